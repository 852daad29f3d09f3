"""Laws as plain values, as scene files hold them: a name, or a table with the law's own numbers.

    [law]
    name = "mooney-rivlin"
    c10 = 120.0
    c01 = 40.0
    kappa = 2000.0
    invertible = true

A law by name alone takes the material's Young's modulus and Poisson's ratio.
"""

from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import number
from pliant.fem.laws import LAWS, find_law
from pliant.fem.laws.law import Energy, Law


def law_of(table: str | dict[str, Any] | None) -> Law | str | None:
    """The law of a scene file's `law` entry."""
    if table is None:
        return None
    try:
        if isinstance(table, str):
            find_law(table)
            return table
        values = dict(table)
        if not isinstance(values.get("name"), str):
            raise BadInput(f"give its name, one of {', '.join(LAWS)}.")
        energy = find_law(values.pop("name"))
        invertible = values.pop("invertible", False)
        if not isinstance(invertible, bool):
            invertible = number(energy.name, "invertible", invertible)
        energy.require_parameters(values)
        return energy(
            invertible=invertible, **{k: _values(energy, k, v) for k, v in values.items()}
        )
    except BadInput as error:
        raise BadInput(f"law: {error}") from error


def _values(energy: Energy, key: str, value: Any) -> float | np.ndarray:
    if not isinstance(value, list):
        return number(energy.name, key, value)
    return np.array([number(energy.name, f"{key}[{i}]", v) for i, v in enumerate(value)])


def describe_law(law: Law | str) -> str | dict[str, Any]:
    """The entry that makes the same law again."""
    if isinstance(law, str):
        return law
    if LAWS.get(law.name) is not law.energy:
        raise BadInput(
            f"The law '{law.name}' is not built in, so a scene file cannot hold it: "
            "save the numbers and make the scene in Python."
        )
    values = {
        n: float(v) if np.ndim(v) == 0 else [float(x) for x in v] for n, v in law.values.items()
    }
    extra = {"invertible": law.floor} if law.floor else {}
    return {"name": law.name, **values, **extra}
