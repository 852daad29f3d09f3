"""Voxel volumes and their conversion to a signed distance on cubic cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage

from pliant.core.errors import BadInput
from pliant.geometry.field import SampledField, check_size, checked_values

BORDER = 2
"""Voxels around a volume of labels within which its bodies may still lie."""


@dataclass(frozen=True, eq=False)
class Volume:
    """Numbers on a grid as a file had them: node (i, j, k) at origin + (i, j, k) * spacing.

    unit: metres of the file's unit of length; None if it does not say.
    """

    values: np.ndarray
    origin: tuple[float, ...] | None
    spacing: tuple[float, ...] | None
    unit: float | None = None


def oriented(values: np.ndarray, matrix: np.ndarray, origin: np.ndarray) -> Volume:
    """A volume along the axes of space, from one whose node i is at matrix @ i + origin.

    The matrix may permute and flip axes; one that turns or shears them is refused.
    """
    dim = values.ndim
    steps = np.abs(matrix)
    if not np.isfinite(matrix).all() or not np.isfinite(origin).all():
        raise BadInput("the header's orientation is not finite: write it again.")
    axis_of = steps.argmax(axis=0)  # column j of the matrix moves along this axis of space
    size = steps.max(axis=0)
    rest = steps.sum(axis=0) - size
    if sorted(axis_of) != list(range(dim)) or (size <= 0.0).any() or (rest > 1e-4 * size).any():
        raise BadInput(
            "the volume's axes are not those of space (it is turned or sheared): "
            "resample it along the axes first."
        )
    origin = origin.astype(np.float64).copy()
    for j in range(dim):
        if matrix[axis_of[j], j] < 0.0:
            values = np.flip(values, axis=j)
            origin = origin + matrix[:, j] * (values.shape[j] - 1)
    order = np.argsort(axis_of)
    return Volume(
        values=values.transpose(order),
        origin=tuple(float(c) for c in origin),
        spacing=tuple(float(size[j]) for j in order),
    )


def in_metres(field: SampledField, unit: float) -> SampledField:
    """The same field, whose lengths (its distances, too) were in a unit of so many metres."""
    if unit == 1.0:
        return field
    return SampledField(
        values=field.values * unit, origin=tuple(unit * c for c in field.origin),
        spacing=unit * field.spacing, source=field.source,
    )  # fmt: skip


def field_from_volume(
    volume: Volume,
    *,
    level: float | None,
    label: int | Sequence[int] | None,
    nearest: bool = False,
    source: dict[str, Any] | None,
) -> SampledField:
    """The volume as a field on cubic cells (see `load_field` for what counts as inside)."""
    if volume.spacing is None:
        raise BadInput("the file does not say its spacing: give spacing=..., the edge of a cell.")
    steps = np.array(volume.spacing)
    origin = volume.origin or (0.0,) * volume.values.ndim
    values = checked_values(volume.values)
    labels = volume.values.dtype.kind in "iub" or level is not None or label is not None
    if nearest:
        values = np.pad(values, BORDER)
        origin = tuple(o - BORDER * h for o, h in zip(origin, steps, strict=True))
        values = _nearest(values, _inside(values, level, label), steps)
        labels = False  # no distance of a surface that could be made smooth
    if labels:
        values = distance_from_mask(_inside(values, level, label), steps)
    h = float(steps.min())
    if (steps > h * (1.0 + 1e-6)).any():
        values = resampled(values, steps / h)
    result = SampledField(values=values, origin=origin, spacing=h, source=source)
    if labels:
        smooth = result.redistanced()
        result = SampledField(values=smooth.values, origin=smooth.origin, spacing=h, source=source)
    return result


def _nearest(values: np.ndarray, inside: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Half the difference of the distances to the voxels inside and to those of other labels.

    Negative wherever the nearest voxel that has a label at all is inside: with every label's share
    the whole space is told apart, without gaps where smooth surfaces of single labels round off.
    Halfway between two labels is inside either.
    """
    others = (values != 0.0) & ~inside
    near = np.asarray(ndimage.distance_transform_edt(~inside, sampling=steps))
    if not others.any():
        return np.full(values.shape, -float(steps.max()))
    far = np.asarray(ndimage.distance_transform_edt(~others, sampling=steps))
    return 0.5 * (near - far) - 1e-9 * float(steps.min())


def _inside(
    values: np.ndarray, level: float | None, label: int | Sequence[int] | None
) -> np.ndarray:
    if level is not None and label is not None:
        raise BadInput("give either level or label, not both.")
    if label is not None:
        several = np.atleast_1d(label)
        missing = [one for one in several if not (values == one).any()]  # each must be there
        inside = np.isin(values, several) & (not missing)
        what = f"equals the label {missing[0]}" if missing else ""
    else:
        inside = values > (0.0 if level is None else level)
        what = "is above zero" if level is None else f"exceeds the level {level:g}"
    if not inside.any():
        raise BadInput(
            f"no value {what} (they go from {values.min():g} to {values.max():g}), "
            "so the field has no inside: choose another."
        )
    return inside


def distance_from_mask(inside: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Signed distance of voxel centres to the boundary between inside and outside voxels.

    steps: voxel edges per axis. The boundary lies half a voxel from the centres beside it.
    A mask that fills its grid ends at the grid's border.
    """
    padded = np.pad(inside, 1)
    middle = (slice(1, -1),) * inside.ndim
    depth = np.asarray(ndimage.distance_transform_edt(padded, sampling=steps))[middle]
    half = float(steps.min()) / 2.0
    if inside.all():
        return half - depth
    height = np.asarray(ndimage.distance_transform_edt(~inside, sampling=steps))
    return np.where(inside, half - depth, height - half)


def resampled(values: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Values on cells `ratio` (>= 1 per axis) times finer, by linear interpolation."""
    last = np.array(values.shape) - 1
    shape = tuple(int(n) for n in np.floor(last * ratio + 1e-9) + 1)
    check_size(shape)
    result = values
    for axis, n in enumerate(shape):
        # One axis at a time: interpolation in several directions is a product of single ones.
        position = np.minimum(np.arange(n) / ratio[axis], last[axis])
        low = np.minimum(position.astype(np.int64), max(last[axis] - 1, 0))
        t = (position - low).reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        result = np.take(result, low, axis) * (1.0 - t) + np.take(result, low + 1, axis) * t
    return result
