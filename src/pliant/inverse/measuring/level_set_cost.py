"""The level-set cost: observed and simulated distances on a grid (seed 000, eqs. 5.4.2, 5.4.3).

The seed compares nu(phi) = 2/pi arctan(phi), which tells inside from outside and flattens what is
far from the surface. Here lengths are measured in cells h and the result scaled so that it is the
distance itself near the surface,

    r = h (arctan(phi / h) - arctan(phi_ref / h)),    dr = dphi / (1 + (phi / h)^2),

at every node of the observed grid. phi is the rest shape's distance carried along by direct forward
advection; its derivatives are those of algorithm A.4, in 2D and 3D.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import World
from pliant.dynamics.trajectory import Trajectory
from pliant.fem.forces.moving_field import MovingField
from pliant.geometry.field import SampledField
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import LinearMisfit, Measure, Pair, beside
from pliant.levelset.advection import Grid, following_grid
from pliant.levelset.forward_advection import ForwardAdvection, forward_advect
from pliant.levelset.forward_advection_adjoint import adjoint, tangent
from pliant.observe.calibration import NONE, Calibration

FAR = 2.5
"""Cells beyond which all distances outside count as this one. The band of samples ends at five
nodes in the 1-norm, 2.9 cells along a diagonal; beyond it nothing is known of the moved field, and
the arctan is flat there."""

RIM_WEIGHT = 1e-3
"""Weight of the value FAR beside the samples (about 2 in all): it makes the field vary smoothly
where the outermost samples come and go, and moves the surface by 0.001 cells."""

MIN_MARGIN = 2
"""Cells of outside that an observed grid needs around the solid, for the kernel of 1.5."""


@dataclass(frozen=True)
class LevelSets:
    """Signed distances of the whole body over time, as a reconstruction gives them.

    times: (frames,) [s]; fields: one per frame, on any grids; noise [m] of the distances if known.
    blurred: True if they come out of the same advection. True distances are blurred by its kernel
    before they are compared, or curvature would pull the fit by 0.14 h^2 / radius.
    """

    times: np.ndarray
    fields: Sequence[SampledField]
    noise: float | None = None
    blurred: bool = False

    @classmethod
    def of(cls, run: Trajectory, *, noise: float = 0.0, seed: int = 0) -> "LevelSets":
        """All frames of a run but the first, with noise [m] on every node."""
        moving = MovingField(run.scene.body)
        rng = np.random.default_rng(seed)
        fields = []
        for u in run.displacements[1:]:
            grid = following_grid(moving.samples, moving.displacements(u))
            values = carried(moving, u, grid).values
            values = values + noise * rng.standard_normal(values.shape)
            corner = tuple(float(c) for c in grid.corner)
            fields.append(SampledField(values=values, origin=corner, spacing=grid.spacing))
        return cls(np.asarray(run.times[1:], float), fields, noise or None, blurred=True)

    def measure(self, scene: World) -> "LevelSetMeasure":
        """What a fit compares a scene with."""
        return LevelSetMeasure(scene, self)


def carried(moving: MovingField, u: np.ndarray, grid: Grid) -> ForwardAdvection:
    """The body's distance, at most FAR cells, moved by u (nodes, >= dim) [m] onto a grid."""
    samples, far = moving.samples, FAR * moving.spacing
    places = grid.cells(samples.nodes + moving.displacements(u))
    phi = np.minimum(samples.phi, far)
    return forward_advect(places, phi, grid.shape, background=(RIM_WEIGHT, far))


class LevelSetMeasure(Measure):
    """Observed level sets against the simulated one; see inverse.measuring.measures.Measure."""

    cost_name = "level_set"

    def __init__(self, scene: World, seen: LevelSets):
        if len(seen.times) != len(seen.fields) or not len(seen.times):
            raise BadInput(f"{len(seen.times)} times were given for {len(seen.fields)} level sets.")
        for k, field in enumerate(seen.fields):
            if field.dim != scene.dim:
                raise BadInput(f"Level set {k} is {field.dim}D, the body {scene.dim}D.")
        self._moving = MovingField(scene.body)
        self._dim = scene.dim
        self.times = list(enumerate(float(t) for t in seen.times))
        self.frame_count, self.noise = len(seen.times), seen.noise
        h = self._moving.spacing
        self._grids = [self._grid(f) for f in seen.fields]
        self._targets = []
        for field, grid in zip(seen.fields, self._grids, strict=True):
            values = np.minimum(field.distance(grid.points()), FAR * h).reshape(grid.shape)
            if not seen.blurred:
                places = np.indices(grid.shape).reshape(self._dim, -1).T.astype(float)
                values = forward_advect(places, values.reshape(-1), grid.shape).values
            self._targets.append(np.arctan(values / h))

    def residuals(
        self, frame: int, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, ForwardAdvection]:
        """r (m,) [m], its derivative by phi (m,) at the nodes of the frame's grid, and phi."""
        found = carried(self._moving, u, self._grids[frame])
        h = self._moving.spacing
        x = found.values / h
        r = h * (np.arctan(x) - self._targets[frame])
        return r.reshape(-1), (1.0 / (1.0 + x * x)).reshape(-1), found

    def linear(
        self, frame: int, state: Pair, loss: Loss, calibration: Calibration = NONE
    ) -> LinearMisfit:
        """See inverse.measuring.measures.Measure."""
        r, slope, found = self.residuals(frame, state[0])
        h = self._moving.spacing

        def along(changes: Sequence[Pair]) -> np.ndarray:
            moved = [self._moving.displacements(du) / h for du, _ in changes]
            return beside([slope * tangent(found, m).reshape(-1) for m in moved], len(r))

        def pull(weight: np.ndarray) -> Pair:
            places, _ = adjoint(found, (weight * slope).reshape(found.values.shape))
            bar = np.zeros((len(state[0]), 3))
            bar[:, : self._dim] = self._moving.spread(places / h)
            return bar, np.zeros_like(bar)

        return LinearMisfit(r, np.ones(len(r), bool), along, pull)

    def _grid(self, field: SampledField) -> Grid:
        """The body's lattice over an observed field's grid, with room for the kernel."""
        h, origin = self._moving.spacing, self._moving.samples.origin
        box_low, box_high = field.grid_box
        low, high = (np.asarray(b) for b in field.bounds)
        low = np.minimum(box_low, low - MIN_MARGIN * h)
        high = np.maximum(box_high, high + MIN_MARGIN * h)
        first = np.ceil((low - origin) / h - 1e-6).astype(np.int64)
        last = np.floor((high - origin) / h + 1e-6).astype(np.int64)
        return Grid(first, tuple(int(n) for n in last - first + 1), origin, h)
