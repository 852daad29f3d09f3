"""Files of ours as typed models: fit.json, result.json, history.jsonl, truth.json, fit files.

They lie where anybody can edit them, so what is read from them is checked key by key; the sentence
names the file and the key.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pliant.app.describing.scene_model import Number, Positive, Table, demand, key_path
from pliant.core.errors import BadInput
from pliant.core.files import read_json
from pliant.core.numbers import LARGEST, require_plain, shown

T = TypeVar("T")

Count = Annotated[int, Field(ge=0, le=10**12)]
Values = dict[str, Number | Annotated[list[Number], Field(min_length=1)]]


class Loose(BaseModel):
    """A table of which some keys are used; others are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class AskedTable(Loose):
    """fit.json."""

    unknowns: Annotated[Values, Field(min_length=1)]
    observations: str | None = None
    units: str | None = None
    frame_rate: Positive | None = None
    crop: Number | None = None


class RunTable(Loose):
    """result.json of a run."""

    status: Literal["running", "interrupted", "failed", "finished"]
    files_digest: str = ""
    kind: Literal["motion", "rest"] = "motion"


class UnknownTable(Loose):
    """A row of a fit's result."""

    truth: float | None
    start: float | None
    value: float | None
    sigma: float | None
    total_sigma: float | None = None
    extrapolated: float | None = None


class NumberTable(Loose):
    """A number of a fit's result with its error bars."""

    value: float | None
    sigma: float | None
    total_sigma: float | None = None
    body_sigma: float | None = None


class NamedTable(Loose):
    """An experiment of a joint fit's result."""

    name: str


class ResultTable(Loose):
    """result.json of a fit, whatever became of it."""

    status: Literal["running", "interrupted", "failed", "finished"]


class FinishedTable(ResultTable):
    """result.json of a finished fit."""

    unknowns: dict[str, UnknownTable]
    advice: list[str]
    law: str | dict[str, Any] | None = None
    materials: list[Any] | None = None
    converged: bool = True
    reasons: list[str] = []
    iterations: Count = 0
    seconds: float = 0.0
    rms: float | None = None
    noise: float | None = None
    numbers: dict[str, NumberTable] = {}
    correlation: list[list[float | None]] = []
    experiments: list[NamedTable] = []
    registered: Annotated[list[float], Field(min_length=3, max_length=6)] | None = None
    report: str | None = None
    best: str | None = None
    table: str | None = None
    picture: str | None = None


class LineTable(Loose):
    """A line of history.jsonl."""

    iteration: Count
    horizon: Count
    cost: float
    rms: float
    values: dict[str, float]
    seconds: Annotated[float, Field(ge=0.0)]
    stage: str = ""


class FitTable(Table):
    """[fit] of a fit file."""

    optimiser: str | None = None
    field: str | None = None
    field_weight: Positive | None = None
    field_parts: bool | None = None
    multi_start: Annotated[int, Field(ge=1, le=1000)] | None = None
    coarse_to_fine: bool | None = None
    discretisation: bool | None = None
    search: bool | None = None
    density_known_to: float | None = None
    memory_limit_mb: Positive | None = None
    max_iterations: Annotated[int, Field(ge=1, le=100_000)] | None = None
    # a model has a method of that name
    registers: Annotated[bool | None, Field(alias="register")] = None


class FitFileTable(Table):
    """A fit file."""

    unknowns: Values = {}
    priors: dict[str, str] = {}
    bounds: dict[str, Annotated[list[Number], Field(min_length=2, max_length=2)]] = {}
    fit: FitTable = FitTable()


class ExperimentTable(Table):
    """One of [[experiments]] of a joint fit."""

    name: Annotated[str, Field(max_length=100)] = ""
    scene: str
    observations: str
    units: str | None = None
    frame_rate: Positive | None = None
    crop: Number | None = None


class JointFileTable(FitFileTable):
    """The file of a joint fit."""

    experiments: Annotated[list[ExperimentTable], Field(min_length=1, max_length=100)]


class FilmTable(Table):
    """What a compressed film says of itself (see app.folders.compressed_film)."""

    format: str
    error: Annotated[float, Field(ge=0.0, le=LARGEST)]
    step: Positive
    image_steps: Positive | None
    noise: Positive | None
    times: Annotated[list[Number], Field(min_length=1, max_length=100_000)]
    views: Annotated[list[list[Count]], Field(min_length=1, max_length=100_000)]
    cameras: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100_000)]
    eyes: Annotated[list[dict[str, Any]], Field(max_length=100_000)]
    time_offset: Number
    depth_scale: Positive
    depth_offset: Number
    controls: Annotated[list[list[Number]], Field(max_length=100_000)]
    checksums: Annotated[list[Count], Field(max_length=100_000)]
    lengths: dict[str, Count]
    files: Annotated[dict[str, Annotated[list[Count], Field(min_length=2, max_length=2)]],
                     Field(min_length=1, max_length=100)]  # fmt: skip


def checked(kind: type[T] | Any, value: Any) -> T:
    """A value as a model or type; BadInput names the key."""
    try:
        return TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        first = max(
            error.errors(include_url=False),
            key=lambda e: (e["type"] == "extra_forbidden", len(e["loc"])),
        )
        place = key_path(first["loc"]) or "the whole"
        if first["type"] == "extra_forbidden":
            raise BadInput(f"{place}: there is no such key.") from None
        if first["type"] == "missing":
            raise BadInput(f"{place}: this key is missing.") from None
        raise BadInput(f"{place}: {demand(first)}, not {shown(first['input'])}.") from None


def read_typed(path: Path, kind: type[T] | Any, way_out: str) -> T:
    """A JSON file as a model or type."""
    value = read_json(path)
    try:
        return checked(kind, value)
    except BadInput as error:
        raise BadInput(f"{path}: {error} {way_out}") from None


def typed_line(text: str, kind: type[T]) -> T:
    """A line of JSON as a model; BadInput if it is damaged."""
    try:
        value = json.loads(text)
        require_plain(value, deepest=8)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"no JSON ({type(error).__name__}).") from error
    return checked(kind, value)


def plain(table: BaseModel) -> dict[str, Any]:
    """The keys of a file, as they were."""
    return table.model_dump(exclude_unset=True, by_alias=True)
