"""A loop of one's own around a scene: step by step, pushed and moved by the caller.

sim = pl.Simulation(scene)
while sim.time < 1.0:
sim.step(forces=[pl.Traction(region, (0.0, 3.0, 0.0))], motions={0: (0.0, 0.01, 0.0)})
print(sim.positions()[tip], sim.energies.kinetic)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import whole_file
from pliant.core.vectors import in_space
from pliant.dynamics.energies import Energies, EnergyBook
from pliant.dynamics.loads import Load, Motion
from pliant.dynamics.march import anchor_before, march
from pliant.dynamics.model import State, StepRecord, World
from pliant.dynamics.scene_vectors import vector3
from pliant.dynamics.simulate import require_finite
from pliant.dynamics.trajectory import Anchor

Forces = np.ndarray | Sequence[Load] | None
Motions = Mapping[int, Sequence[float]] | None


@dataclass(frozen=True)
class Snapshot:
    """A moment of a Simulation: its last fresh start, and what the caller did since then.

    pushes: (steps, nodes, 3) [N]; places: (steps, regions, 3) [m], where the caller moved the held
    regions to; before: the places at the fresh start. Steps are repeated to come back to the bit.
    """

    anchor: Anchor
    number: int
    pushes: np.ndarray = field(repr=False)
    places: np.ndarray = field(repr=False)
    before: np.ndarray = field(repr=False)
    account: np.ndarray = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write an .npz file of plain arrays."""
        a = self.anchor
        with whole_file(Path(path)) as temporary, temporary.open("wb") as stream:
            np.savez(
                stream, allow_pickle=False, numbers=np.array([a.number, self.number]),
                t=np.array(a.t), pushes=self.pushes, places=self.places, before=self.before,
                account=self.account, **{f"state_{k}": f for k, f in a.arrays.items()},
            )  # fmt: skip

    @classmethod
    def load(cls, path: str | Path) -> "Snapshot":
        """Read what `save` has written."""
        names = ("numbers", "t", "pushes", "places", "before", "account")
        try:
            with np.load(path, allow_pickle=False) as archive:
                numbers, t, pushes, places, before, account = (archive[n] for n in names)
                own = [n for n in archive.files if n.startswith("state_")]
                arrays = {n.removeprefix("state_"): archive[n] for n in own}
            first, number = (int(n) for n in numbers)
            anchor = Anchor(first, float(t), arrays)
            return cls(anchor, number, pushes, places, before, account)
        except FileNotFoundError:
            raise BadInput(f"{path}: there is no such file.") from None
        except Exception as error:  # zipfile and numpy raise whatever a damaged file led them to
            raise BadInput(f"{path}: damaged or not a snapshot; take it again.") from error


class Simulation:
    """A scene ready to step. account: keep the whole account of energies, a tenth of a step."""

    def __init__(self, scene: World, *, account: bool = False):
        self.scene = scene
        self._system = scene.make_model()
        self._system.require_stable()
        self._regions = len(scene.fixed)
        self._book = EnergyBook(self._system) if account else None
        self.reset()

    def reset(self) -> None:
        """Back to the scene's start."""
        state = self._system.initial_state()
        self._release(np.zeros((self._regions, 3)))
        self._set(0, state)
        self._anchor_here()
        if self._book is not None:
            self._book.open(state)

    @property
    def number(self) -> int:
        """Steps taken."""
        return self._number

    @property
    def time(self) -> float:
        """Time reached [s]."""
        return self._state.t

    @property
    def state(self) -> State:
        """Displacement, velocity, acceleration on the device, and the time."""
        return self._state

    @property
    def energies(self) -> Energies:
        """Energies [J]; what was taken and given since the start only with account=True."""
        return self._book.now if self._book is not None else self._system.stored(self._state)

    def displacements(self) -> np.ndarray:
        """Of the nodes, (nodes, dim) [m]."""
        return self._motion()[0]

    def _motion(self) -> list[np.ndarray]:
        motion = self._system.carrier.apply(self._state)
        return [field[:, : self.scene.dim].copy() for field in motion]

    def positions(self) -> np.ndarray:
        """Of the nodes, (nodes, dim) [m]."""
        return self.scene.body.nodes + self.displacements()

    def velocities(self) -> np.ndarray:
        """Of the nodes, (nodes, dim) [m/s]."""
        return self._motion()[1]

    def surface(self) -> np.ndarray:
        """Positions of the surface's points, (points, dim) [m]; body.surface has their facets."""
        return self.scene.body.surface.positions(self.positions())

    def step(self, forces: Forces = None, motions: Motions = None) -> StepRecord:
        """Advance one time step; on an error the simulation stays where it was.

        forces: of this step, beside the scene's own: (nodes, dim) [N], or loads (Traction,
        Pressure, PointLoad, BodyForce). motions: where held regions, by their number in
        scene.fixed, are to be at the end of the step, as a displacement from where the scene has
        them [m]; they stay there.
        """
        return self._advance(self._push(forces), self._places_after(motions))

    def snapshot(self) -> Snapshot:
        """The present moment, to come back to."""
        n, regions = len(self.scene.body.nodes), self._regions
        pushes = [np.zeros((n, 3)) if p is None else p for p, _ in self._since]
        places = [p for _, p in self._since]
        account = self._book.now.row() if self._book is not None else np.zeros(0)
        return Snapshot(
            self._anchor, self._number,
            np.reshape(pushes, (-1, n, 3)) if any(p is not None for p, _ in self._since)
            else np.zeros((0, n, 3)),
            np.reshape(places, (len(places), regions, 3)), self._places_there, account,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of a simulation of the same scene, bit by bit."""
        s, steps = snapshot, snapshot.number - snapshot.anchor.number
        n, regions = len(self.scene.body.nodes), self._regions
        there, here = (
            {name: field.shape for name, field in arrays.items()}
            for arrays in (s.anchor.arrays, self._system.saved(self._state))
        )
        fits = there == here
        fits = fits and s.places.shape == (steps, regions, 3) and s.before.shape == (regions, 3)
        if not fits or s.pushes.shape not in ((steps, n, 3), (0, n, 3)):
            raise BadInput("The snapshot is of another scene: its arrays do not fit this body.")
        if self._book is not None and len(s.account) == 0:
            raise BadInput("The snapshot has no account of energies: take it with account=True.")
        book, self._book = self._book, None
        self._release(s.before)
        self._set(s.anchor.number, s.anchor.replay(self._system, s.anchor.number))
        self._anchor_here()
        for k in range(steps):
            push = s.pushes[k] if len(s.pushes) and s.pushes[k].any() else None
            self._advance(push, s.places[k])
        self._book = book
        if book is not None:
            book.open(self._state, Energies.of(s.account))

    # ---------------------------------------------------------------------------------------------

    def _advance(self, push: np.ndarray | None, places: np.ndarray) -> StepRecord:
        system, dt = self._system, self.scene.dt
        system.push(push)
        moving = np.flatnonzero((places != 0.0).any(axis=1) | (self._places != 0.0).any(axis=1))
        during = (self.time, self.time + dt)
        system.drive({
            k: Motion(during, tuple(map(tuple, (self._places[k], places[k]))))
            for k in moving.tolist()
        })  # fmt: skip
        step = next(march(system, self._state, number=self._number))
        require_finite(system, step)
        if self._book is not None:
            self._book.add(step.before, step.after)
        self._since.append((push, places))
        self._places = places
        self._set(step.number, step.after)
        if anchor_before(step.number) == step.number:
            self._anchor_here()
        return step.record

    def _set(self, number: int, state: State) -> None:
        self._number, self._state = number, state

    def _anchor_here(self) -> None:
        """From here on, steps can be repeated to the bit."""
        self._anchor = Anchor.at(self._number, self._state, self._system)
        self._places_there = self._places
        self._since: list[tuple[np.ndarray | None, np.ndarray]] = []

    def _release(self, places: np.ndarray) -> None:
        """Held regions where a caller has left them."""
        self._places = places
        self._system.push(None)
        self._system.drive({})

    def _push(self, forces: Forces) -> np.ndarray | None:
        if forces is None:
            return None
        body = self.scene.body
        if not isinstance(forces, np.ndarray):
            return self.scene.nodal_forces(forces)
        if forces.shape != body.nodes.shape or not np.isfinite(forces).all():
            raise BadInput(
                f"forces must be finite numbers of shape {body.nodes.shape}, or a list of loads."
            )
        return in_space(forces)

    def _places_after(self, motions: Motions) -> np.ndarray:
        if not motions:
            return self._places
        places = self._places.copy()
        for k, value in motions.items():
            if not 0 <= k < len(places):
                raise BadInput(f"motions: the scene has no held region {k}.")
            places[k] = vector3("motions", value)
        return places
