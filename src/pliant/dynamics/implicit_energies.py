"""The energies of an implicit model, and the work of its forces over a step."""

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.dynamics.energies import Energies
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.model import State
from pliant.dynamics.terms.stage import Stage, mix
from pliant.linalg.blocks import combine, dot

if TYPE_CHECKING:
    from pliant.dynamics.implicit import ImplicitModel


def stored(model: "ImplicitModel", state: State) -> Energies:
    """Kinetic, elastic, gravity's and contact's energy of a state."""
    contact = 0.0 if model.touch is None else model.touch.energy(state.u, state.t)
    kept = 0.0 if model.branches is None else model.branches.kept_energy(state.history)
    return Energies(
        kinetic=model.inertia.kinetic_energy(state.v),
        elastic=model.elastic_energy(state.u, state.t) + kept,
        gravity=-float((model.masses @ state.u.numpy()) @ model.loads.gravity),
        contact=contact,
    )


def gravity_in_one_step(model: "ImplicitModel") -> float:
    """What gravity may give a body in one step, 1/2 m (g dt)^2.

    Motions much quicker than the step cannot be told from each other: a stiff body that is let go
    trembles at that level for some steps, whatever its own energies are. No less than the energy
    of a strain of 1e-7, below which roundings and the solver's tolerance are all there is.
    """
    speed = float(np.linalg.norm(model.loads.gravity)) * model.scene.dt
    rounding = 1e-14 * float(np.mean(model.mu)) * model.scene.body.volume
    return max(0.5 * float(model.masses.sum()) * speed**2, rounding)


def step_work(model: "ImplicitModel", before: State, after: State) -> tuple[float, float, float]:
    """Work of damping (taken), contact and loads (given) over a step, part by part."""
    total = np.zeros(3)
    for start, end, scheme in model.parts(before, after):
        stage = model.stage_between(start, end, scheme)
        total += part_work(model, stage, start, end, scheme)
    return float(total[0]), float(total[1]), float(total[2])


def part_work(
    model: "ImplicitModel",
    stage: Stage,
    before: State,
    after: State,
    scheme: Integrator,
    *,
    touching: bool = True,
) -> tuple[float, float, float]:
    """`step_work` of one step, or part of a step, at whose end the stage is.

    A scheme balances forces with the weights of its table; their mean over the step, times the way
    that the nodes went, is the work. touching: whether anybody asks for that of contact.
    """
    share = 1.0 / scheme.force_total
    way = mix((share, -share), (after.u, before.u))
    damping = zeros(model.node_count, wp.vec3d)
    _add_damping(model, stage, damping)
    contact: wp.array | None = None
    if model.touch is not None and (touching or model.boundary.held_moves):
        contact = zeros(model.node_count, wp.vec3d)
        model.touch.add_force(stage, contact)
    loads, external = 0.0, np.zeros(0)
    if model.driven:
        f_new, f_old = scheme.force
        external = f_new * model.external_force(after.t) + f_old * model.external_force(before.t)
        extra = external - scheme.force_total * model.loads.weight
        for term in model.supports:  # whose data act as loads, and are stored in their energy
            f = term.standing_force
            extra = extra - (f_new * f(after.t) + f_old * f(before.t))
        loads = float(np.sum(extra * way.numpy()))
    if model.boundary.changes:
        loads += sum(term.hand_work(before, after) for term in model.supports)
    taken = dot(damping, way)
    if model.branches is not None:
        taken += model.branches.dissipated(stage, after.history)
    if model.boundary.held_moves:
        if model.branches is not None:
            stress = zeros(model.node_count, wp.vec3d)
            model.branches.add_force(stage, stress)
            combine(damping, (1.0, damping), (-1.0, stress))
        others = damping.numpy() - external
        if contact is not None:
            others = others - contact.numpy()
        loads += _held_work(model, stage, (before, after), others, way.numpy())
    return taken, 0.0 if contact is None else dot(contact, way), loads


def _add_damping(model: "ImplicitModel", stage: Stage, out: wp.array) -> None:
    """out += forces of mass and stiffness damping as the step balances them."""
    material = model.material
    if material.mass_damping > 0.0:
        model.inertia.add(stage["rate"], out, material.mass_damping)
    if material.stiffness_damping > 0.0:
        model.elastic.add_damping(stage, out, material.stiffness_damping)
        for term in model.supports:
            term.add_damping(stage["rate"], out, material.stiffness_damping)


def _held_work(
    model: "ImplicitModel",
    stage: Stage,
    ends: tuple[State, State],
    others: np.ndarray,
    way: np.ndarray,
) -> float:
    """Work of the hand that moves strongly held nodes.

    It bears the elastic forces and all `others` on them, and accelerates what they weigh.
    """
    elastic = zeros(model.node_count, wp.vec3d)
    model.elastic.add_elastic(stage, elastic)
    held = model.boundary.free == 0.0
    speeds = [np.square(state.v.numpy()) * held for state in ends]
    faster = 0.5 * float(np.sum(model.masses[:, None] * (speeds[1] - speeds[0])))
    return float(np.sum((elastic.numpy() + others) * way * held)) + faster
