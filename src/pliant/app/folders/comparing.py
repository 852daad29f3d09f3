"""One scene under several models: their runs, and how far each is from that of finite elements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.constitution import DEFAULT, models
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import SimulationStopped, simulate
from pliant.dynamics.trajectory import Trajectory


@dataclass(frozen=True)
class Compared:
    """A model's run of the scene.

    step_ms: of a step, the median; distance: root mean square over nodes and frames of what lies
    between its run and the reference's [m], share: the same over the reference's own displacement;
    tip: along the reference's largest displacement, (frames,) [m]; stopped: why it ended early.
    """

    model: str
    run: Trajectory
    step_ms: float
    residual: float
    distance: float
    share: float
    tip: np.ndarray
    stopped: str = ""

    def row(self) -> dict[str, Any]:
        """Plain values, for files."""
        e = self.run.energies
        return {
            "model": self.model, "steps": self.run.steps, "step_ms": self.step_ms,
            "residual": self.residual, "distance": self.distance, "share": self.share,
            "tip_mean": float(self.tip.mean()), "tip_largest": float(self.tip.max()),
            "tip": self.tip.tolist(), "times": np.asarray(self.run.times).tolist(),
            "energies": {n: np.asarray(getattr(e, n)).tolist() for n in ("kinetic", "elastic",
                                                                        "gravity")},
            "stopped": self.stopped or None,
        }  # fmt: skip


def chosen_models(text: str) -> list[str]:
    """The models of a list a,b,c; raises BadInput for one that there is not."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = models()
    for name in names:
        if name not in known:
            raise BadInput(f"--models: there is no model '{name}'; known: {', '.join(known)}.")
    if not names:
        raise BadInput(f"--models needs at least one of {', '.join(known)}.")
    return list(dict.fromkeys(names))


def compare(
    scene: Scene,
    names: Sequence[str],
    steps: int,
    *,
    progress: Callable[[str, int], None] | None = None,
) -> list[Compared]:
    """Finite elements first (the scene's own law or model if it is one of them), then `names`."""
    first = scene.model if scene.constitution.finite_elements else DEFAULT
    told = scene.law if isinstance(scene.law, str) else getattr(scene.law, "name", first)
    found: list[Compared] = []
    for name in [first, *(n for n in names if n != first)]:
        law = scene.law if name == first or models()[name].takes_law else None
        same = replace(scene, model=name, law=law)
        title = str(told) if name == first else name
        run, step_ms, residual, stopped = _run(same, steps, title, progress)
        reference = found[0].run if found else run
        both = min(run.steps, reference.steps) + 1
        apart = run.displacements[:both] - reference.displacements[:both]
        size = float(np.sqrt(np.mean(np.sum(reference.displacements[:both] ** 2, axis=-1))))
        distance = float(np.sqrt(np.mean(np.sum(apart**2, axis=-1))))
        found.append(
            Compared(title, run, step_ms, residual, distance, distance / max(size, 1e-300),
                     _tip(run, reference), stopped)
        )  # fmt: skip
    return found


def _run(scene: Scene, steps: int, title: str, progress) -> tuple[Trajectory, float, float, str]:
    times: list[float] = []
    residuals: list[float] = []
    system = scene.make_model()
    own = system.step

    def timed(state):
        start = perf_counter()
        after, record = own(state)
        times.append(1e3 * (perf_counter() - start))
        residuals.append(record.solution.residual)
        return after, record

    system.step = timed
    reach = None if progress is None else lambda step: progress(title, step)
    stopped = ""
    try:
        run = simulate(scene, steps, system=system, progress=reach)
    except SimulationStopped as error:
        run, stopped = error.trajectory, str(error)
    if run.steps < 1:
        raise BadInput(f"model = '{title}' cannot take a first step: {stopped}")
    return run, float(np.median(times)), float(np.median(residuals)), stopped


def _tip(run: Trajectory, reference: Trajectory) -> np.ndarray:
    """Displacement of the point that goes farthest in the reference, along its way there."""
    far = np.linalg.norm(reference.displacements, axis=-1)
    frame, node = np.unravel_index(int(np.argmax(far)), far.shape)
    way = reference.displacements[frame, node]
    return run.displacements[:, node] @ (way / max(float(np.linalg.norm(way)), 1e-300))
