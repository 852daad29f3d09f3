"""How to fit, from a TOML file and the command line, which wins.

[unknowns]               start values by name
youngs_modulus = 2200.0
[priors]                 by label: MEAN+-SIGMA, or MEAN*/FACTOR for a log-normal one
density = "1.0+-0.05"
[bounds]                 by label
poisson_ratio = [0.2, 0.49]
[fit]
optimiser = "lbfgs"      auto, lm, gncg, lbfgs, bb
field = "tv"             a Young's modulus for every cell: tv or smooth, with
field_weight = 1.0       its weight, and
field_parts = true       parts of one modulus each cut out of it and fitted again
multi_start = 5
coarse_to_fine = true    by default where the start is far off
search = false           no ladder of stiffnesses where the start is far off
discretisation = false   no coarser repeats for the total error bar
density_known_to = 0.01  relative sigma of a density that is not fitted (0.1)
register = false         leave a depth film where it is, whatever its first frame says
memory_limit_mb = 200.0
max_iterations = 30
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.typed_files import FitFileTable, FitTable, checked, plain
from pliant.core.errors import BadInput
from pliant.core.files import read_toml
from pliant.core.numbers import number
from pliant.dynamics.scene import Scene
from pliant.inverse.fields.field_penalty import KINDS, FieldPenalty
from pliant.inverse.parameters.priors import Prior

Asked = dict[str, Any]
"""Plain values, as fit.json keeps them: unknowns, priors, bounds and the keys of [fit]."""


def read_fit_file(path: str | Path) -> Asked:
    """The tables of a fit's TOML file, checked."""
    found = read_toml(path)
    try:
        return plain(checked(FitFileTable, found))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def merge(file: Asked, given: Mapping[str, Any]) -> Asked:
    """[fit] keys of a file with those of the command line that were given (not None)."""
    out = dict(file.get("fit", {}))
    out |= {key: value for key, value in given.items() if value is not None}
    for key in out:
        try:
            checked(FitTable, {key: out[key]})
        except BadInput as error:
            raise BadInput(f"fit.{error}") from None
    return out


def unknown_options(file: Asked, given: list[str]) -> list[str]:
    """--unknown options, or those that the file's [unknowns] stand for."""
    if given or not file.get("unknowns"):
        return given
    out = []
    for name, value in file["unknowns"].items():
        numbers = value if isinstance(value, list) else [value]
        try:
            out.append(f"{name}=" + ",".join(repr(float(v)) for v in numbers))
        except (TypeError, ValueError):
            raise BadInput(f"unknowns.{name} must be a number or numbers, not {value!r}.") from None
    return out


def parse_priors(file: Asked, given: list[str]) -> dict[str, str]:
    """Label: text of the priors of a file and of --prior LABEL=MEAN+-SIGMA."""
    out = {str(k): str(v) for k, v in file.get("priors", {}).items()}
    for option in given:
        label, found, text = option.partition("=")
        if not found:
            raise BadInput(f"--prior {option}: write LABEL=MEAN+-SIGMA or LABEL=MEAN*/FACTOR.")
        out[label.strip()] = text.strip()
    for text in out.values():
        Prior.parse(text)
    return out


def parse_bounds(file: Asked, given: list[str]) -> dict[str, list[float]]:
    """Label: [lowest, highest] of a file and of --bound LABEL=LOW,HIGH."""
    out: dict[str, Any] = dict(file.get("bounds", {}))
    for option in given:
        label, _, text = option.partition("=")
        out[label.strip()] = text.split(",")
    for label, ends in out.items():
        try:
            low, high = (float(v) for v in ends)
        except (TypeError, ValueError):
            raise BadInput(f"The bounds of {label} are two numbers: LOW,HIGH.") from None
        out[label] = [number("bounds", f"{label}[{i}]", v) for i, v in enumerate((low, high))]
    return out


def reconstruct_options(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `reconstruct` from plain values."""
    options: dict[str, Any] = {}
    plain = ("optimiser", "multi_start", "coarse_to_fine", "discretisation", "max_iterations")
    for key in (*plain, "field_parts", "register", "search", "density_known_to"):
        if asked.get(key) is not None:
            options[key] = asked[key]
    if asked.get("priors"):
        options["priors"] = {k: Prior.parse(v) for k, v in asked["priors"].items()}
    if asked.get("bounds"):
        options["bounds"] = {k: (v[0], v[1]) for k, v in asked["bounds"].items()}
    if asked.get("memory_limit_mb") is not None:
        if not asked["memory_limit_mb"] > 0.0:
            raise BadInput("The memory limit must be positive.")
        options["memory_limit"] = 1e6 * asked["memory_limit_mb"]
    if asked.get("field") is not None:
        weight = asked.get("field_weight")
        options["field_penalty"] = FieldPenalty(asked["field"], 1.0 if weight is None else weight)
    return options


def as_field(starts: dict[str, Any], scene: Scene, kind: str) -> dict[str, Any]:
    """Starts with Young's modulus as one number for every cell."""
    if kind not in KINDS:
        raise BadInput(f"--field must be one of {', '.join(KINDS)}, not '{kind}'.")
    start = starts.get("youngs_modulus", scene.cell_material.youngs_modulus)
    values = np.broadcast_to(np.asarray(start, float), (len(scene.body.cells),))
    return starts | {"youngs_modulus": values.tolist()}
