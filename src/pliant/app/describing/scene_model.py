"""The keys of a scene file, their types and ranges; `check` turns a wrong one into one sentence.

A model here says what may be written. What it means is decided in `scene_files`, by the classes of
the layers below, which check again what a file cannot know (does the region touch the body?).
"""

import difflib
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticKnownError

from pliant.core.errors import BadInput
from pliant.core.numbers import LARGEST, SMALLEST, shown
from pliant.dynamics.constitution import DEFAULT, models
from pliant.dynamics.integrators import INTEGRATORS
from pliant.fem.laws import LAWS


def _of_some_size(value: float) -> float:
    if value < SMALLEST:
        raise PydanticKnownError("greater_than_equal", {"ge": SMALLEST})
    return value


Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Vector = Annotated[list[Number], Field(min_length=2, max_length=3)]
Positive = Annotated[float, Field(gt=0.0, le=LARGEST), AfterValidator(_of_some_size)]
NotNegative = Annotated[float, Field(ge=0.0, le=LARGEST)]
Numbers = Annotated[list[Number], Field(min_length=1)]
Ratio = Annotated[float, Field(gt=-1.0, lt=0.5)]
Description = dict[str, Any]
"""A shape; its keys depend on its type and are checked by geometry.describe."""

MAX_STEPS = 10_000_000
"""More steps than a run directory can hold as files; beyond it a number is a typing error."""


MAX_MODES = 100
"""More modes than a start has: beyond it a number is a typing error."""


class Table(BaseModel):
    """A table of a scene file: unknown keys, wrong types, infinities and NaN are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class BodyTable(Table):
    """[body]: how the shape becomes cells; `file` takes tetrahedra as they are."""

    kind: Literal["grid", "tets"] = "grid"
    spacing: Positive | None = None
    subdivisions: Annotated[int, Field(ge=1, le=8)] | None = None
    axes: Literal["shape", "world"] | None = None
    pieces: Literal["all", "largest"] | None = None
    edge_length: Positive | None = None
    order: Literal[1, 2] | None = None
    file: str | None = None


class BranchTable(Table):
    """[[material.branches]]: a spring that relaxes in a time."""

    modulus: Positive
    time: Positive


class RegionTable(Table):
    """[[material.regions]]: a shape, or labels of the scene's own, and what differs there."""

    shape: Description | None = None
    label: int | Annotated[list[int], Field(min_length=1)] | None = None
    youngs_modulus: Positive | None = None
    poisson_ratio: Ratio | None = None
    density: Positive | None = None


class MaterialTable(Table):
    """[material]: numbers, or lists with one number for every cell."""

    youngs_modulus: Positive | list[Positive] = 2000.0
    poisson_ratio: Ratio | list[Ratio] = 0.3
    density: Positive | list[Positive] = 1.0
    mass_damping: NotNegative | None = None
    stiffness_damping: NotNegative | None = None
    damping_frequencies: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    damping_ratios: Annotated[list[NotNegative], Field(min_length=2, max_length=2)] | None = None
    branches: list[BranchTable] = []
    regions: list[RegionTable] = []


class FixedTable(Table):
    """[[fixed]]: a held region, at one displacement or along a motion."""

    region: Description
    axes: Annotated[str, Field(pattern="^[xyz]{1,3}$")] = "xyz"
    displacement: Vector | None = None
    times: Numbers | None = None
    displacements: Annotated[list[Vector], Field(min_length=1)] | None = None
    stiffness: Positive | None = None
    shift: Vector | None = None


class HistoryTable(Table):
    """How a load's factor changes with time."""

    times: Numbers
    factors: Numbers


class TractionTable(Table):
    """Force per area on a region."""

    type: Literal["traction"]
    region: Description
    force: Vector
    history: HistoryTable | None = None


class PressureTable(Table):
    """Pressure on a region."""

    type: Literal["pressure"]
    region: Description
    pressure: Number
    history: HistoryTable | None = None


class PointTable(Table):
    """Force at a material point."""

    type: Literal["point"]
    point: Vector
    force: Vector
    history: HistoryTable | None = None


class BodyForceTable(Table):
    """Force per volume."""

    type: Literal["body"]
    force: Vector
    history: HistoryTable | None = None


class PlaneTable(Table):
    """The half space normal . x < offset, which bodies stay out of."""

    type: Literal["plane"]
    normal: Vector = [0.0, 1.0, 0.0]
    offset: Number = 0.0


class ObstacleTable(Table):
    """A solid shape, which bodies stay out of."""

    type: Literal["shape"]
    shape: Description
    spacing: Positive | None = None


class ContactTable(Table):
    """[contact]: see ContactLaw."""

    stiffness: Positive | None = None
    sharpness: Positive | None = None
    margin: Number | None = None
    friction: NotNegative = 0.0
    slip_speed: Positive = 1e-3
    kind: Literal["springs", "barrier"] = "springs"
    gap: Positive | None = None
    self_contact: bool = False


class IntegratorTable(Table):
    """[integrator]: the scheme, its time step and its parameter."""

    type: str = "GeneralisedAlpha"
    dt: Positive = 0.01
    theta: Annotated[float, Field(ge=0.5, le=1.0)] | None = None
    alpha: Annotated[float, Field(ge=-1.0 / 3.0 - 1e-12, le=0.0)] | None = None
    spectral_radius: Annotated[float, Field(ge=0.0, le=1.0)] | None = None


LoadTable = Annotated[
    TractionTable | PressureTable | PointTable | BodyForceTable, Field(discriminator="type")
]
AnyObstacleTable = Annotated[PlaneTable | ObstacleTable, Field(discriminator="type")]


class ReferenceTable(Table):
    """The material whose modes a body starts in."""

    youngs_modulus: Positive
    poisson_ratio: Ratio
    density: Positive


class StartTable(Table):
    """[start]: see Start."""

    kind: Literal["rest", "equilibrium", "state"]
    modes: Annotated[int, Field(ge=0, le=MAX_MODES)] = 0
    amplitudes: list[float] = []
    velocities: list[float] = []
    reference: ReferenceTable | None = None


class PointMassTable(Table):
    """[[attached]]: see PointMass."""

    mass: Positive
    point: Vector | None = None
    region: Description | None = None


class BodyKeys(Table):
    """What a body has, of a scene of one or of one of several."""

    model: str = DEFAULT
    dilatation: Literal["mean", "pointwise"] = "mean"
    law: str | Description | None = None
    attached: list[PointMassTable] = []
    shape: Description | None = None
    body: BodyTable = BodyTable()
    material: MaterialTable = MaterialTable()
    fixed: list[FixedTable] = []
    loads: list[LoadTable] = []


class SharedKeys(Table):
    """What the bodies of a scene have in common."""

    title: str = ""
    description: str = ""
    steps: Annotated[int, Field(ge=0, le=MAX_STEPS)] = 30
    preconditioner: Literal["multigrid", "jacobi"] = "multigrid"
    gravity: Vector = [0.0, -9.81, 0.0]
    tolerance: Annotated[float, Field(gt=0.0, lt=1.0)] = 1e-8
    obstacles: list[AnyObstacleTable] = []
    contact: ContactTable = ContactTable()
    integrator: IntegratorTable = IntegratorTable()


class SceneTable(SharedKeys, BodyKeys):
    """A whole scene file."""

    numbers: Description | None = None
    initial_velocity: Vector = [0.0, 0.0, 0.0]
    initial_spin: Vector = [0.0, 0.0, 0.0]
    start: Literal["rest", "equilibrium"] | StartTable = "rest"


T = TypeVar("T", bound=Table)


def check(description: dict[str, Any]) -> SceneTable:
    """The checked tables; a BadInput names the full key and what to write instead."""
    table = validated(SceneTable, description)
    require_known("integrator", table.integrator.type, "integrator.type")
    require_known("model", table.model, "model")
    return table


def validated(kind: type[T], description: dict[str, Any]) -> T:
    """The tables of a file of this kind, names of models and schemes unchecked."""
    try:
        return kind.model_validate(description)
    except ValidationError as error:
        # a misspelt key explains the one that is missing; where a key may be a number or a list,
        # the deepest complaint is the precise one
        first = max(
            error.errors(include_url=False),
            key=lambda e: (e["type"] == "extra_forbidden", len(e["loc"])),
        )
        raise BadInput(_sentence(first, description, kind)) from None


def require_known(what: Literal["integrator", "model"], name: str, place: str) -> None:
    """Refuse an integrator or a model that nobody has registered."""
    known = [*INTEGRATORS] if what == "integrator" else [*models()]
    if name not in known:
        hint = _near(name, known)
        if what == "model" and (law := difflib.get_close_matches(name, LAWS, n=1)):
            hint = f"a law has a key of its own, law = '{law[0]}'."
        raise BadInput(f"{place}: there is no {what} '{name}'; {hint}")


def key_path(loc: tuple[Any, ...]) -> str:
    """("loads", 0, "force") as loads[0].force."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _sentence(error: Any, description: dict[str, Any], whole: type[Table]) -> str:
    loc, value, kind = _written(error["loc"], description), error["input"], error["type"]
    place = key_path(loc)
    if kind == "extra_forbidden":
        known = _keys_at(loc[:-1], description, whole)
        return f"{place}: there is no such key; {_near(str(loc[-1]), known)}"
    if kind == "missing":
        return f"{place}: this key is missing."
    if kind == "union_tag_not_found":
        return f"{place}.type: this key is missing."
    if kind == "union_tag_invalid":
        tags = error["ctx"]["expected_tags"].replace("'", "")
        return f"{place}.type: '{error['ctx']['tag']}' is unknown; known: {tags}."
    return f"{place}: {demand(error)}, not {shown(value)}."


_DEMANDS = {
    "float_type": "it must be a number",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "finite_number": "it must be a finite number",
    "string_type": "it must be a text in quotes",
    "string_pattern_mismatch": "it must be letters of 'xyz'",
    "list_type": "it must be a list",
    "dict_type": "it must be a table",
    "model_type": "it must be a table",
    "model_attributes_type": "it must be a table",
    "greater_than": "it must be greater than {gt:g}",
    "greater_than_equal": "it must be at least {ge:g}",
    "less_than": "it must be less than {lt:g}",
    "less_than_equal": "it must be at most {le:g}",
    "too_short": "it must have at least {min_length} entries",
    "too_long": "it must have at most {max_length} entries",
    "literal_error": "it must be {expected}",
}


def demand(error: Any) -> str:
    """What a value must be, from an error of pydantic's."""
    template = _DEMANDS.get(error["type"])
    if template is None:
        return str(error["msg"])
    return template.format(**error.get("ctx", {}))


def _near(word: str, known: list[str]) -> str:
    """Advice that names the nearest known word, or all of them."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}."


def _written(loc: tuple[Any, ...], description: Any) -> tuple[Any, ...]:
    """The path as the file has it: pydantic also lists the branches of unions it tried."""
    path: list[Any] = []
    here = description
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        tagged = position >= 2 and loc[position - 2] in ("loads", "obstacles")
        if tagged and isinstance(here, dict) and part == here.get("type"):
            continue  # the tag of loads[i] or obstacles[i], which may also be the name of a key
        if isinstance(here, dict) and (part in here or last and not _is_branch(part)):
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _is_branch(part: Any) -> bool:
    return not isinstance(part, str) or "[" in part or part in ("float", "int")


def _keys_at(loc: tuple[Any, ...], description: Any, whole: type[Table]) -> list[str]:
    """The keys that the table at this path may have."""
    here: Any = whole
    value = description
    for part in loc:
        value = value[part]
        here = here if isinstance(part, int) else here.model_fields[part].annotation
        here = _table_of(here, value)
    return [*here.model_fields]


def _table_of(annotation: Any, value: Any) -> Any:
    """The table class inside an annotation; of several, the one whose type the value names."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    if get_origin(annotation) is Annotated:
        return _table_of(get_args(annotation)[0], value)
    choices = [a for a in get_args(annotation) if a is not type(None)]
    if len(choices) == 1:
        return _table_of(choices[0], value)
    for choice in choices:
        tags = get_args(choice.model_fields["type"].annotation)
        if isinstance(value, dict) and value.get("type") in tags:
            return choice
    return annotation
