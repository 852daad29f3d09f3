"""Pictures and films of a whole motion: what `pliant render` and `pliant export` draw."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pliant.app.pictures.picture import Cut, Studio
from pliant.app.render.picture_files import MOVIES, save_gif, save_mp4, save_png
from pliant.core.errors import BadInput
from pliant.dynamics.trajectory import Trajectory
from pliant.fem.bodies.render_mesh import RenderMesh
from pliant.observe.observations import Observations

MOST_FRAMES = 600
"""Of a film; longer motions are thinned out."""

SUFFIXES = (".png", *MOVIES)


@dataclass(frozen=True)
class Look:
    """How a motion is drawn; see app.pictures.picture.Studio.

    samples: rays per axis at edges; None for 3 in a picture and 2 in a film. azimuth, elevation: of
    the camera [degrees]; None for the usual view.
    """

    style: str = "surface"
    colour: str = "displacement"
    cut: Cut | None = None
    width: int = 640
    height: int = 480
    samples: int | None = None
    azimuth: float | None = None
    elevation: float | None = None

    def __post_init__(self):
        if self.samples is not None and not 1 <= self.samples <= 8:
            raise BadInput(f"--samples must lie between 1 and 8, not {self.samples}.")
        if self.elevation is not None and not -80.0 <= self.elevation <= 80.0:
            raise BadInput(f"--elevation must lie between -80 and 80, not {self.elevation}.")
        if self.azimuth is not None and not np.isfinite(self.azimuth):
            raise BadInput(f"--azimuth must be an angle, not {self.azimuth}.")


def chosen_frames(run: Trajectory, *, time: float | None, most: int) -> list[int]:
    """The frame nearest to a time [s], or up to `most` evenly over the motion."""
    if time is not None:
        if not run.times[0] <= time <= run.times[-1] + 1e-9:
            raise BadInput(f"--time {time:g} is outside the motion, 0 to {run.times[-1]:g} s.")
        return [int(np.argmin(np.abs(np.asarray(run.times) - time)))]
    count = len(run.times)
    return [int(i) for i in np.unique(np.linspace(0, count - 1, min(count, most)).round())]


def observed_points(run: Trajectory, seen: Observations | None, frames: list[int]) -> list:
    """For each frame the points of the observation nearest in time."""
    if seen is None:
        return [None] * len(frames)
    usable = [f for f in seen.frames if len(f)]
    if not usable:
        raise BadInput("The observations hold no points.")
    times = np.array([f.time for f in usable])
    return [usable[int(np.argmin(np.abs(times - run.times[k])))].points for k in frames]


def _require_met(cut: Cut, positions: np.ndarray) -> None:
    """Refuse a slice that misses the body in all its positions (frames, nodes, dim) [m]."""
    if cut.at is None or cut.axis not in "xyz"[: positions.shape[2]]:
        return
    along = positions[..., "xyz".index(cut.axis)]
    low, high = float(along.min()), float(along.max())
    if not low <= cut.at <= high:
        raise BadInput(
            f"--slice-at {cut.at:g} misses the body, which reaches from {cut.axis} = {low:.4g} to "
            f"{high:.4g} m."
        )


def draw_motion(
    run: Trajectory,
    path: str | Path,
    look: Look,
    *,
    time: float | None = None,
    seconds: float | None = None,
    mesh: RenderMesh | None = None,
    own: bool = False,
    seen: Observations | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write .png (one moment, the last unless `time` is given), .gif or .mp4; returns the frames.

    mesh: drawn instead of the body's own surface, by default the one that the body was made from,
    unless `own`. seconds: how long the film lasts; by default twice the motion, from 2 to 8 s.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadInput(f"{path}: pictures end in {', '.join(SUFFIXES)}.")
    if seconds is not None and not seconds > 0.0:
        raise BadInput(f"--seconds must be positive, not {seconds}.")
    shown = chosen_frames(run, time=time, most=MOST_FRAMES)
    points = observed_points(run, seen, shown)
    body = run.scene.body
    if look.style == "slice" and look.cut is not None:
        _require_met(look.cut, np.stack([body.nodes + run.displacements[k] for k in shown]))
    given = {"azimuth": look.azimuth, "elevation": look.elevation}
    directions = {k: float(np.radians(v)) for k, v in given.items() if v is not None}
    if suffix == ".png":
        shown, points = shown[-1:], points[-1:]
    studio = Studio(
        run.scene, [body.nodes + run.displacements[k] for k in shown],
        width=look.width, height=look.height, directions=directions, style=look.style,
        colour=look.colour, cut=look.cut, mesh=mesh, own=own, observed=points,
        samples=look.samples or (3 if suffix == ".png" else 2),
    )  # fmt: skip

    def pictures() -> Iterator[np.ndarray]:
        for done, (k, seen_here) in enumerate(zip(shown, points, strict=True)):
            nodes = body.nodes + run.displacements[k]
            time = float(run.times[k])
            share = f"{time:.0%} of the load" if run.of_load else None
            yield studio.picture(nodes, time=time, observed=seen_here, caption=share)
            if progress is not None:
                progress(done + 1, len(shown))

    if suffix == ".png":
        save_png(path, next(pictures()))
        return 1
    span = float(run.times[shown[-1]] - run.times[shown[0]])
    length = seconds if seconds is not None else float(np.clip(2.0 * span, 2.0, 8.0))
    if suffix == ".gif":
        save_gif(path, list(pictures()), seconds=length / len(shown))
    else:
        save_mp4(path, pictures(), seconds=length / len(shown))
    return len(shown)
