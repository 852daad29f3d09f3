"""How a scene begins: as it was made, in balance with its loads, or plucked out of that balance.

A plucked body is one that something holds: the force M A with A = sum_i w_i^2 q_i phi_i, phi_i the
lowest modes and w_i their angular frequencies, bends it by about q_i phi_i, however far, and is
gone at t = 0, which leaves the acceleration -A. Its velocity there is sum_i r_i phi_i. The modes
are those of `reference`, which stays as it is when the scene's own material changes: what the
amplitudes mean must not depend on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.material import Material

if TYPE_CHECKING:
    from pliant.dynamics.scene import Scene

ALIKE = 1.05
"""Ratio of frequencies up to which two modes are one pair, whose directions are the mesh's whim."""

KINDS = ("rest", "equilibrium", "state")


@dataclass(frozen=True)
class Start:
    """kind: "rest" (the shape as it was made), "equilibrium", or "state", plucked out of it.

    modes: how many modes a plucked body has; amplitudes [m] and velocities [m/s] of their largest
    displacement, zero unless given. reference: the material whose modes they are, the scene's own
    where it is left out.
    """

    kind: str = "rest"
    modes: int = 0
    amplitudes: Sequence[float] = ()
    velocities: Sequence[float] = ()
    reference: Material | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise BadInput(f"start must be one of {', '.join(KINDS)}, not '{self.kind}'.")
        if (self.modes > 0) != (self.kind == "state"):
            raise BadInput(
                "start: modes is how many modes a body has that starts in a state: one or more for "
                f'"state", none for "rest" and "equilibrium", not {self.modes} for "{self.kind}".'
            )
        for name in ("amplitudes", "velocities"):
            value = np.asarray(getattr(self, name) or (0.0,) * self.modes, float)
            if value.shape != (self.modes,) or not np.isfinite(value).all():
                raise BadInput(
                    f"start: {name} must be {self.modes} finite numbers, one per mode, "
                    f"not {getattr(self, name)!r}."
                )
            object.__setattr__(self, name, tuple(value.tolist()))

    @property
    def balanced(self) -> bool:
        """Whether forces are in balance before it begins."""
        return self.kind != "rest"


def start_of(given: "Start | str", scene: "Scene") -> Start:
    """What a scene's start says, its reference chosen."""
    start = given if isinstance(given, Start) else Start(given)
    if start.balanced:
        made = scene.constitution
        if made.rests_as != made.tag:
            raise BadInput(
                f'start = "{start.kind}" needs forces that a balance can be found of: use '
                f'model = "{made.rests_as}" instead of "{made.tag}".'
            )
        if any(scene.initial_velocity) or any(scene.initial_spin):
            raise BadInput(
                f'start = "{start.kind}" stands still or moves in its modes: leave '
                "initial_velocity and initial_spin out."
            )
    if start.modes and start.reference is None:
        lam, mu = (float(np.mean(m)) for m in scene.constitution.moduli())
        material = Material(
            youngs_modulus=mu * (3.0 * lam + 2.0 * mu) / (lam + mu),
            poisson_ratio=0.5 * lam / (lam + mu),
            density=float(np.mean(scene.cell_material.densities(len(scene.body.cells)))),
        )
        start = replace(start, reference=material)
    return start


class StartFields:
    """The modes of a start as fields (modes, nodes, 3), the largest displacement of each 1."""

    def __init__(self, scene: "Scene"):
        from pliant.dynamics.modes import modes  # which are of the models that begin here

        start = scene.begin
        assert start.reference is not None
        fixed = [replace(f, shift=()) for f in scene.fixed]  # nor on where clamps are found to be
        bare = replace(
            scene, material=start.reference, model="linear", law=None, start="rest", source=None,
            fixed=fixed,
        )  # fmt: skip
        found = modes(bare, start.modes)
        squares = (2.0 * np.pi * found.frequencies) ** 2
        own, self.squares = _along_axes(scene, found.shapes, squares)
        self.shapes = np.zeros((start.modes, len(scene.body.nodes), 3))
        for k, shape in enumerate(own):
            surface = scene.body.surface.positions(shape)
            farthest = surface[np.argmax(np.linalg.norm(surface, axis=1))]
            sign = np.sign(farthest[np.argmax(np.abs(farthest))])
            self.shapes[k, :, : scene.dim] = sign * shape / np.linalg.norm(farthest)

    def field(self, numbers: np.ndarray) -> np.ndarray:
        """sum_i n_i phi_i, (nodes, 3)."""
        return np.tensordot(np.asarray(numbers, float), self.shapes, 1)

    def pull(self, bar: np.ndarray) -> np.ndarray:
        """Transpose of `field`."""
        return np.tensordot(self.shapes, bar, ([1, 2], [0, 1]))


def _along_axes(
    scene: "Scene", shapes: np.ndarray, squares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Modes of like frequencies turned among themselves until each moves along one axis, x first.

    A square beam bends as well to the one side as to the other, and along any diagonal: which two
    of them a mesh prefers must not decide what the amplitudes mean.
    """
    body = scene.body
    volumes = np.bincount(body.cells.ravel(), body.node_volumes.ravel(), len(body.nodes))
    along = np.arange(1.0, scene.dim + 1.0)
    shapes, squares = shapes.copy(), squares.copy()
    roots = np.sqrt(np.maximum(squares, 0.0))
    first = 0
    for last in range(1, len(roots) + 1):
        if last < len(roots) and roots[last] <= ALIKE * roots[first]:
            continue
        group = slice(first, last)
        weighted = volumes[:, None] * along * shapes[group]
        turn = np.linalg.eigh(np.tensordot(shapes[group], weighted, ([1, 2], [1, 2])))[1]
        shapes[group] = np.tensordot(turn.T, shapes[group], 1)
        squares[group] = (turn**2).T @ squares[group]
        first = last
    return shapes, squares
