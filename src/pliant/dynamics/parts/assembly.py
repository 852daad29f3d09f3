"""Several bodies that step together: the terms of each, and the contact between them.

The state is that of all parts, u, v and a one after the other; the step is Newton's method in all
unknowns at once, so that contact between parts is taken where the step ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pliant.core.errors import BadInput
from pliant.core.launch import to_device
from pliant.dynamics.energies import Energies
from pliant.dynamics.implicit_energies import part_work
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.loads import Motion
from pliant.dynamics.model import Model, State, StepRecord
from pliant.dynamics.newton import Newton, NewtonRecord
from pliant.dynamics.node_carrier import NodeCarrier
from pliant.dynamics.parts import barrier
from pliant.dynamics.parts.assembly_derivatives import AssemblyDerivatives
from pliant.dynamics.parts.assembly_problem import AssemblyProblem
from pliant.dynamics.parts.assembly_system import AssemblyMatrix, AssemblyPreconditioner, Slices
from pliant.dynamics.parts.barrier import Barrier, BarrierBetween, first_barrier
from pliant.dynamics.parts.between import Between
from pliant.dynamics.parts.contact_numbers import mean_modulus
from pliant.dynamics.parts.pair_forces import TAIL, PairLaw, touches
from pliant.dynamics.parts.pairs import Pairs, joined
from pliant.dynamics.parts.search import find
from pliant.dynamics.parts.touching_surface import TouchingSurface, surface_of
from pliant.dynamics.parts.truncated_gradients import TruncatedGradients
from pliant.dynamics.step_parts import step_in_parts
from pliant.linalg.blocks import combine
from pliant.linalg.pcg import ConjugateGradients

if TYPE_CHECKING:
    from pliant.dynamics.parts.parts_scene import PartsScene

STIFFNESS = 20.0
"""Contact stiffness times spacing over Young's modulus of the softer part, where the law gives
none."""

SHARPNESS = 100.0
"""Sharpness times the smaller spacing, where the law gives none: pressures from a thousandth to a
tenth of the modulus lie within a twentieth of a cell."""

SHALLOW = 7.0
"""Sharpness times margin, where the law gives neither: bodies that just touch press on each other
with a five-thousandth of the modulus, and are not thrown apart."""

DEEPEST_START = 0.25
"""Cells by which parts may overlap where they begin: blocks that touch do by rounding, and edges
of a smooth distance are rounded within a cell."""

KEPT_RECORDS = 10_000
"""How Newton's method went is remembered of so many solves."""


class AssemblyModel(Model):
    """The models of the parts, and what is between them."""

    def __init__(self, scene: "PartsScene"):
        self.scene: PartsScene = scene
        self.carrier = NodeCarrier()
        self.names = [part.name for part in scene.parts]
        self.models: list[Any] = [own.make_model() for own in scene.scenes]
        for part, model in zip(scene.parts, self.models, strict=True):
            if not hasattr(model, "pose") or model.elastic.linear:
                raise BadInput(
                    f"{part.name}: model = '{part.model}' cannot touch other parts: use "
                    "'corotated' or a law."
                )
        starts = np.cumsum([0, *(m.node_count for m in self.models)]).tolist()
        self.starts, self.node_count = starts, starts[-1]
        self.slices = Slices(starts)
        bodies = [own.body for own in scene.scenes]
        self.rest = np.concatenate([body.nodes for body in bodies])
        self.spacings = np.array([body.spacing for body in bodies])
        self.barrier: Barrier | None = None
        self.surfaces: list[TouchingSurface] = []
        if not scene.contact.is_barrier:
            self.surfaces = [surface_of(b, s) for b, s in zip(bodies, starts, strict=False)]
        self.matrix = AssemblyMatrix([m.matrix for m in self.models], self.slices)
        self.preconditioner = AssemblyPreconditioner(
            [m.preconditioner for m in self.models], self.slices
        )
        gradients: Any = TruncatedGradients if scene.contact.is_barrier else ConjugateGradients
        self.solver = gradients(self.matrix, self.preconditioner)
        self.newton = Newton(None, self.node_count)
        self.newton_records: list[NewtonRecord] = []
        self._split: list[tuple[State, list[State]]] = []
        self._found: list[tuple[Any, Any]] = []
        self.version = 0  # counts changes of the numbers
        if scene.contact.is_barrier:
            self.barrier = first_barrier(scene.contact, bodies, starts, scene.obstacles)
        self._set_law()
        if self.barrier is None:
            self._require_apart()

    def update(self, scene: "PartsScene") -> None:
        """Take over a variant of the scene: the same bodies and walls, other numbers."""
        self.scene = scene
        for model, own in zip(self.models, scene.scenes, strict=True):
            model.update(own)
        self._found.clear()
        self.version += 1
        self._set_law()

    @cached_property
    def derivatives(self) -> AssemblyDerivatives:
        """Tangents and adjoints of the steps."""
        return AssemblyDerivatives(self)

    def _set_law(self) -> None:
        moduli = [mean_modulus(m.lam, m.mu) for m in self.models]
        springs = self.barrier is None
        share = STIFFNESS / self.spacings if springs else np.full(len(moduli), barrier.STIFFNESS)
        self.stiffness_per_modulus = share
        self.part_stiffness = share * np.array(moduli)
        """(parts,) of a law that follows the moduli: springs [Pa/m], barriers [Pa]."""
        self.part_sharpness = SHARPNESS / self.spacings
        if self.barrier is not None:
            law = self.scene.contact
            self.barrier = replace(
                self.barrier, stiffness=law.stiffness or float(self.part_stiffness.min()),
                friction=law.friction, slip_speed=law.slip_speed,
            )  # fmt: skip

    def _require_apart(self) -> None:
        """Refuse parts that lie in one another: springs would throw them out."""
        x = self.rest
        none = np.zeros(len(self.surfaces))
        pairs = joined(find(self.surfaces, x, none), self.surfaces, x)
        d = touches(pairs, pairs.coordinates(x)).d
        spacing = self.spacings[pairs.owners].min(axis=1)
        deep = np.flatnonzero(d < -DEEPEST_START * spacing)
        if len(deep):
            a, b = (self.names[k] for k in sorted(pairs.owners[deep[np.argmin(d[deep])]]))
            raise BadInput(
                f"parts: '{a}' and '{b}' overlap by {-d.min():.3g} m where they begin; place them "
                "apart."
            )

    def forget(self) -> None:
        """Start anew: bits of what follows do not depend on what was computed before."""
        for model in self.models:
            model.forget()
        self.newton.forget()

    # states --------------------------------------------------------------------------------------

    def split(self, state: State) -> list[State]:
        """The parts' own states: views of the same arrays."""
        for known, parts in self._split:
            if known is state:
                return parts
        fields = [self.slices.of(f) for f in state.fields()]
        histories, rest = [], list(state.history)
        for model in self.models:
            count = len(model.relaxed())
            histories.append(rest[:count])
            rest = rest[count:]
        parts = [
            State.of(u, v, a, state.t, history=history)
            for u, v, a, history in zip(*fields, histories, strict=True)
        ]
        self._split = [(state, parts), *self._split[:3]]
        return parts

    def joined(self, parts: Sequence[State]) -> State:
        """The state of all parts."""
        u, v, a = (
            to_device(np.concatenate([f.numpy() for f in fields]), wp.vec3d)
            for fields in zip(*(part.fields() for part in parts), strict=True)
        )
        history = [array for part in parts for array in part.history]
        return State.of(u, v, a, parts[0].t, history=history)

    def initial_state(self) -> State:
        """All parts at their starts; none pushes another yet."""
        self.forget()
        return self.joined([model.initial_state() for model in self.models])

    def saved(self, state: State) -> dict[str, np.ndarray]:
        """The state's arrays, copied to the host."""
        return {name: field.numpy().copy() for name, field in state.arrays.items()}

    def restored(self, arrays: Mapping[str, np.ndarray], t: float) -> State:
        """The inverse of `saved`."""
        return State({n: to_device(np.asarray(f, float), wp.vec3d) for n, f in arrays.items()}, t)

    def sum_of(self, duals: Sequence[State | None], state: State) -> State:
        """The sum of derivatives by a state, array by array; None is zero."""
        total = {name: wp.zeros_like(field) for name, field in state.arrays.items()}
        for part in (d for d in duals if d is not None):
            for name, own in part.arrays.items():
                combine(total[name], (1.0, total[name]), (1.0, own))
        return State(total, state.t)

    # contact -------------------------------------------------------------------------------------

    def pairs_at(self, state: State) -> Pairs:
        """Points and facets that may touch in the step from a state."""
        for known, pairs in self._found:
            if known is state.u:
                return pairs
        u, v = state.u.numpy(), state.v.numpy()
        law = self.scene.contact
        margin, sharpness = law.margin or 0.0, law.sharpness or self.part_sharpness.min()
        way = np.array([
            np.sqrt(np.square(own).sum(axis=1).max()) * self.scene.dt
            for own in (v[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True))
        ])  # fmt: skip
        reach = 0.5 * max(TAIL / sharpness - margin, 0.0) + way
        x = self.rest + u
        pairs = joined(find(self.surfaces, x, reach), self.surfaces, x)
        self._found = [(state.u, pairs), *self._found[:3]]
        return pairs

    def softer(self, pairs: Pairs) -> np.ndarray:
        """The part (n,) whose modulus a pair's stiffness follows."""
        both = self.part_stiffness[pairs.owners]
        return pairs.owners[np.arange(len(pairs)), np.argmin(both, axis=1)]

    def between(
        self, state: State, force: tuple[float, float] = (1.0, 0.0)
    ) -> Between | BarrierBetween:
        """The contact between parts in a step from a state."""
        if self.barrier is not None:
            softest = np.array([np.argmin(self.part_stiffness)])
            return BarrierBetween(self.barrier, state.u.numpy(), force, softest)
        pairs, law, n = self.pairs_at(state), self.scene.contact, len(self.pairs_at(state))
        stiffness = self.part_stiffness[self.softer(pairs)]
        sharpness = self.part_sharpness[pairs.owners].max(axis=1, initial=0.0)
        if law.sharpness is None and law.margin is None:
            margin = SHALLOW / sharpness
        else:
            margin = np.full(n, law.margin or 0.0)
        chosen = PairLaw(
            stiffness if law.stiffness is None else np.full(n, law.stiffness),
            sharpness if law.sharpness is None else np.full(n, law.sharpness),
            margin, law.friction, law.slip_speed,
        )  # fmt: skip
        return Between(pairs, chosen, self.rest, state.u.numpy(), force, self.softer(pairs))

    def _energy_between(self, state: State) -> float:
        """[J]"""
        if self.barrier is not None:
            for known, energy in self._found:
                if known is state.u:
                    return energy
        between = self.between(state)
        energy = between.energy(state.u.numpy()) if between else 0.0
        if self.barrier is not None:
            self._found = [(state.u, energy), *self._found[:3]]
        return energy

    def touching_energy(self, state: State) -> float:
        """Energy [J] of contact between parts and with obstacles."""
        own = sum(m.touching_energy(p) for m, p in zip(self.models, self.split(state), strict=True))
        return own + self._energy_between(state)

    # steps ---------------------------------------------------------------------------------------

    def pose(self, state: State, scheme: Integrator) -> AssemblyProblem:
        """The step from a state, to be solved."""
        return AssemblyProblem(self, state, scheme)

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step, in parts if the whole fails; raises SolverFailure."""
        del self.newton_records[:-KEPT_RECORDS]
        return step_in_parts(self, state)

    def parts(self, before: State, after: State) -> Sequence[tuple[State, State, Integrator]]:
        """The step, or the shorter ones that it was taken in: (before, after, scheme) of each."""
        return after.parts or ((before, after, self.scene.integrator),)

    def held_at(self, t: float, dt: float):
        """Of parts with held nodes: which (nodes, 3), where, how fast, and the part's rows."""
        for model, a, b in zip(self.models, self.starts[:-1], self.starts[1:], strict=True):
            boundary = model.boundary
            if boundary.held:
                now, before = boundary.prescribed(t + dt), boundary.prescribed(t)
                yield boundary.free == 0.0, now, (now - before) / dt, slice(a, b)

    # what a run is told --------------------------------------------------------------------------

    @property
    def masses(self) -> np.ndarray:
        """Lumped masses of the nodes, (nodes,) [kg]."""
        return np.concatenate([m.masses for m in self.models])

    @property
    def takes_or_gives(self) -> bool:
        """Whether anything but gravity and contact may do work."""
        return any(m.takes_or_gives for m in self.models)

    def stored(self, state: State) -> Energies:
        """Kinetic, elastic, gravity's and contact's energy of a state."""
        own = [m.stored(p) for m, p in zip(self.models, self.split(state), strict=True)]
        total = np.sum([e.row() for e in own], axis=0)
        summed = Energies.of(total)
        return Energies(
            float(summed.kinetic), float(summed.elastic), float(summed.gravity),
            float(summed.contact) + self._energy_between(state),
        )  # fmt: skip

    def work(self, before: State, after: State) -> tuple[float, float, float]:
        """Work of damping (taken), contact and loads (given) over a step, part by part."""
        total = np.zeros(3)
        for start, end, scheme in self.parts(before, after):
            ends = zip(self.models, self.split(start), self.split(end), strict=True)
            for model, own_start, own_end in ends:
                stage = model.stage_between(own_start, own_end, scheme)
                total += part_work(model, stage, own_start, own_end, scheme)
            between = self.between(start, scheme.force)
            if between:
                way = (end.u.numpy() - start.u.numpy()) / scheme.force_total
                total[1] += np.sum(between.forces(end.u.numpy(), end.v.numpy()) * way)
        return float(total[0]), float(total[1]), float(total[2])

    def least_exchange(self) -> float:
        """Energy [J] below which motions cannot be told from errors of the step."""
        return sum(m.least_exchange() for m in self.models)

    def force_rounding(self, u: wp.array) -> float:
        """Size [N] of the rounding in the forces about displacement u."""
        own = zip(self.models, self.slices.of(u), strict=True)
        return float(np.sqrt(sum(m.force_rounding(part) ** 2 for m, part in own)))

    def remedy(self) -> str:
        """What to do when energy appears from nowhere."""
        return self.models[0].remedy()

    def require_stable(self) -> None:
        """Refuse a time step beyond the limit of a conditionally stable scheme."""
        for model in self.models:
            model.require_stable()

    def inverted(self, state: State) -> int:
        """Cells that are inside out."""
        own = zip(self.models, self.split(state), strict=True)
        return sum(m.inverted(p) for m, p in own)

    def push(self, force: np.ndarray | None) -> None:
        """One more force (nodes, 3) [N] on the steps to come."""
        for model, a, b in zip(self.models, self.starts[:-1], self.starts[1:], strict=True):
            model.push(None if force is None else force[a:b])

    def drive(self, motions: Mapping[int, Motion]) -> None:
        """Move held regions, by their number among those of all parts."""
        first = 0
        for model in self.models:
            count = len(model.scene.fixed)
            model.drive({k - first: m for k, m in motions.items() if first <= k < first + count})
            first += count
