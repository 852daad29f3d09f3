"""Points that are not of the body: table, walls, hands."""

import logging
from dataclasses import replace

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import World
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.trajectory import Trajectory
from pliant.observe.observations import Frame, Observations

log = logging.getLogger(__name__)

ON_PLANE = 3.0
"""Distance to a plane, in standard deviations of the noise, within which a point lies on it."""


def crop_to_body(
    seen: Observations, scene: World, margin: float, *, run: Trajectory | None = None
) -> Observations:
    """Without points farther than `margin` [m] from all that the moving body's surface sweeps.

    run: the motion expected, from start values that need not be good; simulated here if not given.
    Points on one of the scene's planes go too, unless the body comes as close as to the plane:
    those cannot be told apart.
    """
    from scipy.spatial import KDTree

    if scene.dim != 3:
        raise BadInput("Only 3D observations can be cropped to a body.")
    if not (np.isfinite(margin) and margin > 0.0):
        raise BadInput(f"The margin must be positive, not {margin}.")
    run = run if run is not None else _expected(seen, scene)
    spacing = scene.body.spacing
    swept = np.concatenate([run.surface(k) for k in range(len(run.times))])
    _, first = np.unique(
        np.round(swept / (0.5 * spacing)).astype(np.int64), axis=0, return_index=True
    )
    tree = KDTree(swept[first])
    thick = max(ON_PLANE * (seen.noise or 0.0), 0.5 * spacing)
    reach = max(margin, 2.0 * spacing)
    planes = [(np.array(o.normal), o.offset) for o in scene.obstacles if isinstance(o, Plane)]
    frames, far, flat = [], 0, 0
    for frame in seen.frames:
        distance, _ = tree.query(frame.points, distance_upper_bound=reach, workers=-1)
        keep = np.isfinite(distance)
        far += int((~keep).sum())
        for n, offset in planes:
            on = (np.abs(frame.points @ n - offset) < thick) & (distance > 2.0 * thick)
            flat += int((on & keep).sum())
            keep &= ~on
        frames.append(_chosen(frame, keep))
    total = max(seen.point_count, 1)
    if far:
        log.warning(
            "%d of %d points (%.1f %%) lie more than %.3g m from where the body can be: dropped as "
            "background.", far, total, 100.0 * far / total, reach,
        )  # fmt: skip
    if flat:
        log.warning("%d points lie on a plane of the scene: dropped as its surface.", flat)
    if far + flat == seen.point_count > 0:
        raise BadInput(
            "No observed point lies near the body: check the units, the cameras' poses and whether "
            "the recording and the scene share one frame of reference."
        )
    return replace(seen, frames=frames)


def _expected(seen: Observations, scene: World) -> Trajectory:
    from pliant.dynamics.simulate import simulate

    last = max((f.time for f in seen.frames), default=0.0)
    return simulate(scene, int(np.ceil(last / scene.dt - 1e-9)))


def _chosen(frame: Frame, keep: np.ndarray) -> Frame:
    if keep.all():
        return frame
    return Frame(
        frame.time, frame.points[keep], frame.camera[keep], frame.pixel[keep], frame.depth[keep]
    )
