"""Checks of the vectors a person hands to a shape: each returns the clean value or raises."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import number, shown


def vector(owner: str, name: str, value: Any, *, dims: Sequence[int] = (2, 3)) -> tuple[float, ...]:
    """Two or three finite floats (which lengths are allowed: `dims`)."""
    wanted = " or ".join(str(d) for d in dims)
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise BadInput(f"{owner}: {name} must be a list of {wanted} numbers, got {shown(value)}.")
    items = list(value)
    if len(items) not in dims:
        raise BadInput(f"{owner}: {name} must have {wanted} numbers, got {len(items)}.")
    return tuple(number(owner, f"{name}[{i}]", item) for i, item in enumerate(items))


def direction(owner: str, name: str, value: Any, *, dims: Sequence[int] = (2, 3)) -> tuple:
    """A vector scaled to unit length; the zero vector has no direction and is refused."""
    raw = np.array(vector(owner, name, value, dims=dims))
    largest = np.abs(raw).max()
    if largest == 0.0:
        raise BadInput(f"{owner}: {name} must not be the zero vector.")
    raw = raw / largest  # so that the square of 1e200 cannot overflow
    return tuple(float(c) for c in raw / np.linalg.norm(raw))


def as_points(points: Any, dim: int) -> np.ndarray:
    """Query points as an (n, dim) float64 array."""
    try:
        result = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"points must be numbers in an array of shape (n, {dim}).") from error
    if result.ndim != 2 or result.shape[1] != dim:
        raise BadInput(f"points must have the shape (n, {dim}), got {result.shape}.")
    return result
