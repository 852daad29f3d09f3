"""Where the energy of a body is, where it went, and whether some came from nowhere.

Between two states of a run

    kinetic + elastic + gravity + contact + damping + rubbing + scheme = start + loads:

stored in motion, in the body (its walls and the ghost penalty of its cuts included), in height and
in the springs of the contact; taken by stiffness and mass damping, by contact (friction, and what
its linearised springs lose), and by the time integrator; given by loads and walls that move.
`scheme` is what is left over. The exact motion has none; second-order schemes err to and fro, those
with numerical damping take some, and a scheme that gives energy is no longer stable.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.dynamics.scene import vector3
from pliant.dynamics.system import State, System
from pliant.linalg.blocks import combine, dot

LARGEST_GAIN = 0.2
"""Share of the energy exchanged so far that may appear from nowhere before a run is stopped. A
stable run errs by some per cent at most, an unstable one passes this mark and doubles soon."""


@dataclass(frozen=True)
class Energies:
    """Energies [J], numbers or arrays over the frames; 2D: per metre of thickness.

    kinetic, elastic, gravity (from the rest shape on), contact: at each frame; damping, rubbing,
    scheme: taken since the start; loads: given since the start.
    """

    kinetic: np.ndarray | float = 0.0
    elastic: np.ndarray | float = 0.0
    gravity: np.ndarray | float = 0.0
    contact: np.ndarray | float = 0.0
    damping: np.ndarray | float = 0.0
    rubbing: np.ndarray | float = 0.0
    scheme: np.ndarray | float = 0.0
    loads: np.ndarray | float = 0.0

    @property
    def total(self) -> np.ndarray | float:
        """Kinetic and stored energy."""
        return self.kinetic + self.elastic + self.gravity + self.contact

    @property
    def dissipated(self) -> np.ndarray | float:
        """Taken by damping and by contact."""
        return self.damping + self.rubbing

    @property
    def appeared(self) -> Any:
        """Energy that came from nowhere since the start; negative: that the scheme has taken.

        Contact and scheme together: where an impact is quicker than a step, what one of them loses
        the other seems to give.
        """
        return -(self.scheme + self.rubbing)

    def row(self) -> np.ndarray:
        """The numbers in the order of the fields, the last axis."""
        return np.stack([np.asarray(getattr(self, name), float) for name in NAMES], axis=-1)

    @classmethod
    def of(cls, rows: np.ndarray) -> "Energies":
        """The inverse of `row`."""
        return cls(*(rows[..., j] for j in range(len(NAMES))))


NAMES = tuple(f.name for f in fields(Energies))


def stored(system: System, state: State) -> Energies:
    """Kinetic, elastic, gravity's and contact's energy of a state."""
    u, v = state.u.numpy(), state.v.numpy()
    inertia = zeros(system.node_count, wp.vec3d)
    system.add_inertia(state.v, inertia, 1.0)
    g = vector3("gravity", system.scene.gravity)
    contact = 0.0 if system.contact is None else system.contact.energy(state.u)
    return Energies(
        kinetic=0.5 * float(np.sum(v * inertia.numpy())),
        elastic=system.elastic_energy(state),
        gravity=-float((system.mass_host @ u) @ g),
        contact=contact,
    )


class EnergyBook:
    """Keeps the account of a run: `open` at its start, `add` after every step."""

    def __init__(self, system: System):
        self.system = system
        self.now = Energies()
        self.start = self.exchanged = 0.0

    def open(self, state: State, carried: Energies | None = None) -> Energies:
        """Begin at a state; carried: the account of the run that led to it."""
        self.now = carried or stored(self.system, state)
        e = self.now
        self.start = float(e.total + e.dissipated + e.scheme - e.loads)
        moved = float(abs(e.kinetic) + abs(e.elastic) + abs(e.gravity) + abs(e.contact))
        self.exchanged = max(moved, _of_one_step(self.system))
        return self.now

    def add(self, before: State, after: State) -> Energies:
        """The account after the step from one state to the next."""
        s, last = self.system, self.now
        now = stored(s, after)
        damping, touched, loads = step_work(s, before, after)
        now = replace(
            now,
            damping=last.damping + damping,
            rubbing=last.rubbing - touched - (now.contact - last.contact),
            loads=last.loads + loads,
        )
        scheme = self.start + now.loads - (now.total + now.dissipated)
        self.now = replace(now, scheme=scheme)
        moved = now.kinetic + abs(now.elastic) + abs(now.gravity) + now.contact + now.dissipated
        self.exchanged = max(self.exchanged, float(moved))
        return self.now

    @property
    def gain(self) -> float:
        """Energy that appeared from nowhere, as a share of what was exchanged so far."""
        return self.now.appeared / max(self.exchanged, 1e-300)

    def complaint(self, t: float) -> str | None:
        """What to say when energy appears from nowhere; None as long as it does not."""
        finite = np.isfinite(self.now.row()).all()
        if finite and self.gain <= LARGEST_GAIN:
            return None
        scene = self.system.scene
        scheme = scene.integrator
        appeared = f"{self.now.appeared:.3g} J" if finite else "an infinite energy"
        advice = f"a smaller time step (dt = {scheme.dt / 4.0:.2g} s, say)"
        if not scheme.damps:
            advice += ", or an integrator that damps high frequencies (GeneralisedAlpha)"
        return (
            f"Energy appears from nowhere: at t = {t:.4g} s the body holds {appeared} more than "
            f"its loads gave it ({self.exchanged:.3g} J exchanged so far), so {scheme.name} is "
            f"unstable at dt = {scheme.dt:g} s. Use {advice}."
        )


def _of_one_step(system: System) -> float:
    """What gravity may give a body in one step, 1/2 m (g dt)^2.

    Motions much quicker than the step cannot be told from each other: a stiff body that is let go
    trembles at that level for some steps, whatever its own energies are. No less than the energy
    of a strain of 1e-7, below which roundings and the solver's tolerance are all there is.
    """
    speed = float(np.linalg.norm(vector3("gravity", system.scene.gravity))) * system.scene.dt
    rounding = 1e-14 * float(np.mean(system.mu)) * system.scene.body.volume
    return max(0.5 * float(system.mass_host.sum()) * speed**2, rounding)


def step_work(system: System, before: State, after: State) -> tuple[float, float, float]:
    """Work of damping (taken), contact and loads (given) over a step, part by part."""
    total = np.zeros(3)
    for start, end in system.walk(before, after):
        total += _part_work(system, start, end)
    return float(total[0]), float(total[1]), float(total[2])


def _part_work(system: System, before: State, after: State) -> tuple[float, float, float]:
    """`step_work` of one step, or part of a step.

    A scheme balances forces with the weights of its table; their mean over the step, times the way
    that the nodes went, is the work.
    """
    scheme = system.scene.integrator
    way = zeros(system.node_count, wp.vec3d)
    combine(way, (1.0 / scheme.force_total, after.u), (-1.0 / scheme.force_total, before.u))
    damping, contact = (zeros(system.node_count, wp.vec3d) for _ in range(2))
    _add_damping(system, before, after, damping)
    if system.contact is not None:
        f_new, f_old = scheme.force
        system.contact.add_forces(
            before.u, before.v, system.contact_at(before, after), (after.u, after.v),
            f_new=f_new, f_old=f_old, per_x=(scheme.next_u[0], scheme.next_v[0]), out=contact,
        )  # fmt: skip
    f_new, f_old = scheme.force
    external = f_new * system.external_force(after.t) + f_old * system.external_force(before.t)
    weight = system.mass_host[:, None] * vector3("gravity", system.scene.gravity)
    loads = float(np.sum((external - scheme.force_total * weight) * way.numpy()))
    if system.boundary.changes:
        # a wall's data act as loads; what they store in its penalty is elastic energy
        loads -= system.wall_shift(after) - system.wall_shift(before)
    if system.boundary.held_moves:
        wall = damping.numpy() - contact.numpy() - external
        loads += _held_work(system, before, after, wall, way.numpy())
    return dot(damping, way), dot(contact, way), loads


def _add_damping(system: System, before: State, after: State, out: wp.array) -> None:
    """out += forces of mass and stiffness damping as the step balances them."""
    scheme, material = system.scene.integrator, system.material
    if material.mass_damping == 0.0 and material.stiffness_damping == 0.0:
        return
    rate = zeros(system.node_count, wp.vec3d)
    weights = (scheme.system[1], *(-row[1] for row in scheme.history))
    state4 = (system.unknown(before, after), *before.fields())
    combine(rate, *zip(weights[:2], state4[:2], strict=True))
    combine(rate, (1.0, rate), *zip(weights[2:], state4[2:], strict=True))
    if material.mass_damping > 0.0:
        system.add_inertia(rate, out, material.mass_damping)
    if material.stiffness_damping > 0.0:
        system.add_damping(before, rate, out, material.stiffness_damping)


def _held_work(
    system: System, before: State, after: State, others: np.ndarray, way: np.ndarray
) -> float:
    """Work of the hand that moves strongly held nodes.

    It bears the elastic forces and all `others` on them, and accelerates what they weigh.
    """
    elastic = zeros(system.node_count, wp.vec3d)
    system.add_elastic(before, after, elastic)
    held = system.boundary.free == 0.0
    speeds = [np.square(state.v.numpy()) * held for state in (before, after)]
    faster = 0.5 * float(np.sum(system.mass_host[:, None] * (speeds[1] - speeds[0])))
    return float(np.sum((elastic.numpy() + others) * way * held)) + faster
