"""Vectors of a scene, and those that its body cannot follow: too short, or out of its plane."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.loads import BodyForce, Motion, PointLoad, Traction
from pliant.dynamics.obstacles import Plane


def vector3(name: str, value: Sequence[float]) -> np.ndarray:
    """A 2D or 3D vector as three numbers."""
    array = np.asarray(value, float)
    if array.ndim != 1 or len(array) not in (2, 3) or not np.isfinite(array).all():
        raise BadInput(f"{name} must be two or three finite numbers, not {value!r}.")
    out = np.zeros(3)
    out[: len(array)] = array
    return out


def require_vectors(scene: Any) -> None:
    """Refuse two numbers for a body in space, and a part along z for a flat one."""
    dim = scene.body.dim
    for name in ("gravity", "initial_velocity"):
        _require(name, getattr(scene, name), dim, may_be_short=True)
    for name, vector in _vectors(scene):
        _require(name, vector, dim)


def _vectors(scene: Any) -> Iterator[tuple[str, Any]]:
    for i, fixed in enumerate(scene.fixed):
        given = fixed.displacement
        if isinstance(given, Motion):
            for vector in given.values:
                yield f"fixed[{i}].displacements", vector
        elif given is not None and not callable(given):
            yield f"fixed[{i}].displacement", given
    for i, load in enumerate(scene.loads):
        if isinstance(load, PointLoad):
            yield f"loads[{i}].point", load.point
        if isinstance(load, PointLoad | Traction | BodyForce) and not callable(load.force):
            yield f"loads[{i}].force", load.force
    for i, obstacle in enumerate(scene.obstacles):
        if isinstance(obstacle, Plane):
            yield f"obstacles[{i}].normal", obstacle.normal


def _require(name: str, vector: Any, dim: int, *, may_be_short: bool = False) -> None:
    numbers = np.asarray(vector, float).reshape(-1)
    if dim == 3 and len(numbers) != 3 and not (may_be_short and len(numbers) == 2):
        raise BadInput(f"{name}: it needs 3 numbers, as the body is in space, not {len(numbers)}.")
    if dim == 2 and (len(numbers) not in (2, 3) or numbers[2:].any()):
        raise BadInput(f"{name}: the body lies in the plane z = 0; give 2 numbers, x and y.")
