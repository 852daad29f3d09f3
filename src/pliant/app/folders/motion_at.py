"""Where a scene's nodes are when a recording's frames were taken."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import simulate
from pliant.inverse.motion.moment import Moment

MOST_STEPS = 1_000_000

Progress = Callable[[int, int], None]
"""Told (steps done, steps)."""


def nodes_at(
    scene: Scene, times: Sequence[float], progress: Progress | None = None
) -> Iterator[np.ndarray]:
    """Positions (nodes, dim) [m] at each time [s], of one simulation."""
    moments = [Moment.at(k, time, scene.dt) for k, time in enumerate(times)]
    steps = max(m.last for m in moments)
    if steps > MOST_STEPS:
        raise BadInput(f"Its last frame is {steps} time steps away: check the times.")
    told = None if progress is None else (lambda step: progress(step, steps))
    run = simulate(scene, steps, progress=told)
    for m in moments:
        before, after = ((run.displacements[i], run.velocities[i]) for i in (m.step, m.last))
        yield scene.body.nodes + m.mix(before, after)[0]
