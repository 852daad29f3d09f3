"""Depth views of a body at rest, poses known, fused to a signed distance field.

After Curless and Levoy 1996: every node of a grid keeps the weighted mean of its distances to the
surface along the views' rays, cut off at a truncation; weights fall with the tilt of the surface.
A node that some view looked through is outside; one that no view ever reached is taken to be
inside, so that the surface closes where nobody looked. Then the largest piece is kept, its cavities
are filled, and the field becomes a distance (geometry.redistance).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.lengths import length
from pliant.geometry.field import SampledField, grid_points
from pliant.geometry.redistance import redistance
from pliant.observe.depth_views import depth_images, depth_view, pixel_size
from pliant.observe.observations import Observations
from pliant.observe.scan_cleaning import crowded_box, find_table, one_piece

log = logging.getLogger(__name__)

MOST_NODES = 16_000_000
"""Largest grid: with redistancing a node takes about 150 bytes."""

FRONT_CELLS, FRONT_NOISE = 2.5, 4.0
"""Distance in front of the surface at which what a view says is cut off: in cells, and at least in
sigmas of the depth. Shorter, noise tears the surface."""

BEHIND_CELLS, BEHIND_NOISE = 1.5, 3.0
"""The same behind it. With four cells a node outside the body was hidden just so far behind its rim
and counted as inside: a bunny of 10 cm grew by 0.22 mm at a spacing of 1.5 mm."""

DEFAULT_PIXELS = 2.0
"""Spacing of the grid in pixels where none is given."""

DEFAULT_CELLS = 160.0
"""Most cells along the longest side where none is given."""

MARGIN = 3
"""Nodes kept around the body beyond the truncation."""

LEAST_OVERLAP = 0.05
"""Share of the seen surface that two views must share. Two opposite views of a ball share 3 %, its
rim at a grazing angle, which ties them to nothing."""


@dataclass(frozen=True)
class Scan:
    """shape: the body, to be saved or simulated; weight: of all views at each node of its grid;
    views: how many came within the truncation; disagreement [m]: of one view with the mean of all,
    about the noise if the poses are right; overlap: share of the seen surface that two views or
    more saw; seen: share of the whole surface that any did; pieces, cavities: removed and filled.
    """

    shape: SampledField
    weight: np.ndarray
    views: np.ndarray
    view_count: int
    disagreement: float
    overlap: float
    seen: float
    pieces: int
    cavities: int
    table: tuple[np.ndarray, float] | None = None
    advice: tuple[str, ...] = ()

    def seen_at(self, points: np.ndarray, least: int = 1) -> np.ndarray:
        """Whether at least so many views saw the surface near the points (n, 3)."""
        at = np.round((np.asarray(points, float) - self.shape.origin) / self.shape.spacing)
        at = np.clip(at.astype(int), 0, np.array(self.views.shape) - 1)
        return self.views[tuple(at.T)] >= least

    def save(self, path: str | Path) -> SampledField:
        """Write the field file that `pl.load_shape` takes."""
        return self.shape.save(path)


def fuse(
    observations: Observations | str | Path,
    spacing: float | None = None,
    *,
    table: bool | tuple[Any, float] | None = None,
    carve: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Scan:
    """The shape of a body at rest from depth views with known cameras.

    observations: depth frames or their folder, all of them of the body at rest. spacing [m] of the
    grid: twice a pixel's width if not given. table: True to find a plane and remove what lies on or
    below it, or its (normal, offset). carve: whether pixels that saw nothing, nor anything around
    them, empty the nodes behind them. progress(done, views).
    """
    if not isinstance(observations, Observations):
        from pliant.observe.files import load_observations

        observations = load_observations(observations)
    seen = observations
    if not seen.point_count or not seen.cameras:
        raise BadInput(
            "The recording has no depth with known cameras; a scan needs depth images "
            "(pliant observe --layout npz or depth)."
        )
    images = list(depth_images(seen))
    points = _points(seen)
    noise = seen.noise or 0.0
    # cells of several pixels, however fine the grid: points of one surface must touch in them
    box_cell = max(8.0 * (spacing or 0.0), 8.0 * pixel_size(seen))
    plane = None
    if table is not None and table is not False:
        thickness = max(3.0 * noise, pixel_size(seen))
        eye = np.mean([c.position for c, _ in images], axis=0)
        plane = find_table(points, thickness, eye) if table is True else _given_plane(table)
        above = points @ plane[0] - plane[1] > thickness
        if not above.any():
            raise BadInput("No point lies above the table: turn its normal round.")
        points = points[above]
    low, high = crowded_box(points, box_cell)
    if spacing is None:
        spacing = max(DEFAULT_PIXELS * pixel_size(seen), float(np.max(high - low)) / DEFAULT_CELLS)
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise BadInput(f"spacing must be positive, not {spacing}.")
    truncation = max(FRONT_CELLS * spacing, FRONT_NOISE * noise)
    behind = max(BEHIND_CELLS * spacing, BEHIND_NOISE * noise)
    shape, origin = _grid(low, high, spacing, truncation)
    total, weight, square, views, nothing = _accumulated(
        images, shape, origin, spacing, (truncation, behind), noise, progress
    )
    with np.errstate(invalid="ignore"):
        phi = np.where(weight > 0.0, total / np.where(weight > 0.0, weight, 1.0), -behind)
    if carve:
        phi[(weight == 0.0) & (nothing > 0)] = truncation
    near = (views > 0) & (np.abs(phi) < spacing)
    if not near.any():
        raise BadInput(
            f"No view comes within {length(truncation)} of a surface on this grid: check the "
            "cameras' poses and the units."
        )
    shared = near & (views > 1)
    overlap = float(shared.sum() / near.sum())
    if len(images) > 1 and overlap < LEAST_OVERLAP:
        raise BadInput(
            f"The {len(images)} views do not overlap: only {100.0 * overlap:.0f} % of the surface "
            "is seen by two of them; check the cameras' poses, or film with more of them."
        )
    disagreement = _disagreement(total, weight, square, views, shared)
    if plane is not None:
        normal, offset = plane
        height = grid_points(shape, origin, spacing).reshape(*shape, 3) @ normal - offset
        phi = np.maximum(phi, 0.5 * spacing + 2.0 * disagreement - height)
    phi, pieces, cavities = one_piece(phi, truncation)
    field = SampledField(redistance(phi, spacing=spacing), tuple(origin), spacing)
    share = _seen_share(field, views)
    scan = Scan(
        field, weight, views, len(images), disagreement, overlap, share, pieces, cavities, plane
    )
    return _with_advice(scan, noise)


def _points(seen: Observations) -> np.ndarray:
    points = np.concatenate([f.points for f in seen.frames if len(f)])
    return points[np.isfinite(points).all(axis=1)]


def _given_plane(table: Any) -> tuple[np.ndarray, float]:
    try:
        normal, offset = np.asarray(table[0], float).reshape(3), float(table[1])
    except (TypeError, ValueError, IndexError):
        raise BadInput(f"table must be (normal, offset) or True, not {table!r}.") from None
    size = np.linalg.norm(normal)
    if not (np.isfinite(size) and size > 0.0 and np.isfinite(offset)):
        raise BadInput(f"The table's normal must have a length, not {table[0]}.")
    return normal / size, offset / float(size)


def _grid(
    low: np.ndarray, high: np.ndarray, spacing: float, truncation: float
) -> tuple[tuple[int, int, int], np.ndarray]:
    """Nodes at integer multiples of the spacing; sizes are checked before memory is taken."""
    margin = truncation + MARGIN * spacing
    first = np.floor((low - margin) / spacing)
    count = np.ceil((high + margin) / spacing) - first + 1.0
    nodes = float(np.prod(count))
    if not nodes <= MOST_NODES:
        coarser = spacing * (nodes / MOST_NODES) ** (1.0 / 3.0) * 1.05
        raise BadInput(
            f"A spacing of {length(spacing)} needs {nodes:.3g} nodes for a body of "
            f"{length(float(np.max(high - low)))}, more than {MOST_NODES:,}: use "
            f"{length(coarser, 2)} or more."
        )
    return (int(count[0]), int(count[1]), int(count[2])), first * spacing


def _accumulated(
    images: list, shape: tuple[int, int, int], origin: np.ndarray, spacing: float,
    cut: tuple[float, float], noise: float, progress: Callable[[int, int], None] | None,
) -> list[np.ndarray]:  # fmt: skip
    """Sums over the views: w d, w, w d^2, views near, views that saw nothing."""
    import warp as wp

    from pliant.core.launch import launch, to_device, zeros
    from pliant.observe.fusion_kernel import add_view

    count = int(np.prod(shape))
    sums = [zeros(count, wp.float64) for _ in range(3)] + [zeros(count, wp.int32) for _ in range(2)]
    for done, (camera, image) in enumerate(images):
        view = depth_view(camera, image, spacing=spacing, noise=noise)
        launch(add_view, count, [
            wp.vec3i(*shape), wp.vec3d(*origin), wp.float64(spacing),
            wp.mat33d(*np.asarray(camera.rotation, float).reshape(-1)),
            wp.vec3d(*np.asarray(camera.position, float)),
            wp.vec4d(camera.fx, camera.fy, camera.cx, camera.cy),
            to_device(view.depth, wp.float64), to_device(view.cosine, wp.float64),
            to_device(view.empty.astype(np.int32), wp.int32), wp.float64(view.jump),
            wp.float64(cut[0]), wp.float64(cut[1]), *sums,
        ])  # fmt: skip
        if progress is not None:
            progress(done + 1, len(images))
    return [a.numpy().reshape(shape) for a in sums]


def _disagreement(total, weight, square, views, shared) -> float:
    """Root mean square of one view's distance against the mean of all, where several saw it."""
    if not shared.any():
        return 0.0
    w, n = weight[shared], views[shared]
    spread = np.maximum(square[shared] / w - (total[shared] / w) ** 2, 0.0)
    return float(np.sqrt(np.mean(spread * n / (n - 1.0))))


def _seen_share(field: SampledField, views: np.ndarray) -> float:
    near = np.abs(field.values) < field.spacing
    return float((views[near] > 0).mean())


def _with_advice(scan: Scan, noise: float) -> Scan:
    lines = []
    expected = max(2.0 * noise, 0.35 * scan.shape.spacing)
    if scan.view_count > 1 and scan.disagreement > expected:
        lines.append(
            f"Views disagree by {length(scan.disagreement, 2)} where they overlap, more than the "
            "noise: the poses may be off, or the body moved."
        )
    if scan.seen < 0.9:
        lines.append(
            f"{100.0 * (1.0 - scan.seen):.0f} % of the surface was seen by no view and is only "
            "closed: film it from there, or take that part with caution."
        )
    if scan.overlap < 0.5:
        lines.append(
            f"Only {100.0 * scan.overlap:.0f} % of the seen surface was seen twice: the noise of "
            "the rest is not averaged."
        )
    return replace(scan, advice=tuple(lines))
