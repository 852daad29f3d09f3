"""What a law's step takes: points by vector registers, stiff walls, first guesses. No clocks."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import set_threads, thread_count, to_device, zeros
from pliant.dynamics.implicit import PENALTY_SWEEPS, ImplicitModel
from pliant.dynamics.integrators import Newmark1
from pliant.dynamics.newton import DIRECT_NODES
from pliant.dynamics.rest import find_rest
from pliant.linalg.pcg import Tolerance


def held_bar(law="neo-hookean", spacing=0.1):
    body = pl.GridBody(pl.shapes.box(center=(0.53, 0, 0), size=(1.0, 0.43, 0.41)), spacing)
    wall = pl.shapes.box(center=(0, 0, 0), size=(0.1, 1, 1))
    return pl.Scene(
        body, pl.Material(2e3, 0.3, density=1.5, stiffness_damping=0.01), law=law,
        fixed=[pl.Fixed(wall)], integrator=Newmark1(0.02), tolerance=1e-6,
    )  # fmt: skip


def random_field(system, size, seed):
    rng = np.random.default_rng(seed)
    return to_device(size * rng.standard_normal((system.node_count, 3)), wp.vec3d)


@pytest.mark.parametrize("law", ["neo-hookean", "ogden"])
def test_matrix_is_the_change_of_the_forces(law):
    """By invariants or stretches and with the viscous part, against changes cell by cell."""
    system = ImplicitModel(held_bar(law, spacing=0.2))
    hyper, n = system.elastic.operator, system.node_count
    u, at, p = (random_field(system, size, k) for k, size in enumerate((0.005, 0.005, 1.0)))
    factors = {"mass_factor": 3.0, "stiffness_factor": 0.02, "viscous_factor": 0.01}
    hyper.assemble(system.matrix, system.inertia.mass, u, viscous_at=at, project=False, **factors)
    one, two = (zeros(n, wp.vec3d) for _ in range(2))
    system.matrix.multiply(p, one, masked=False)
    system.inertia.add(p, two, 3.0)
    hyper.add_force_change(u, p, two, factor=0.02)
    hyper.add_viscous(at, p, two, factor=0.01)
    assert np.abs(one.numpy() - two.numpy()).max() < 1e-12 * np.abs(two.numpy()).max()


def test_walls_do_not_slow_multigrid_down():
    """A law's penalty walls, whose nodes are swept by themselves: 15 iterations instead of 56."""
    system = ImplicitModel(held_bar(spacing=0.05))
    grids, b = system.preconditioner, random_field(system, 1.0, 1)
    taken = {}
    for walls, swept in ((False, False), (True, False), (True, True)):
        grids.stiff, grids._matrix = None, None
        if swept:
            held = system.walls.walls
            grids.expect_stiff(held.body.cells[held.cell], PENALTY_SWEEPS)
        x = zeros(system.node_count, wp.vec3d)
        weights = {"mass_factor": 80.0, "stiffness_factor": 0.02}
        system.elastic.operator.assemble(system.matrix, system.inertia.mass, x, **weights)
        if walls:
            system.walls.operator.assemble(system.matrix, 0.02)
        grids.update(system.matrix, fresh=True)
        taken[walls, swept] = system.solver.solve(b, x, Tolerance(relative=1e-8)).iterations
    assert taken[True, True] <= taken[False, False] + 4
    assert taken[True, True] < 0.5 * taken[True, False]


def test_cycle_with_stiff_nodes_is_symmetric():
    system = ImplicitModel(held_bar())
    system.elastic.operator.assemble(
        system.matrix, system.inertia.mass, zeros(system.node_count, wp.vec3d), mass_factor=80.0,
        stiffness_factor=0.02,
    )  # fmt: skip
    system.walls.operator.assemble(system.matrix, 0.02)
    system.preconditioner.update(system.matrix)
    r = [random_field(system, 1.0, k) for k in range(2)]
    z = [zeros(system.node_count, wp.vec3d) for _ in range(2)]
    for a, b in zip(r, z, strict=True):
        system.preconditioner.apply(a, b)
    one, two = ((r[k].numpy() * z[1 - k].numpy()).sum() for k in range(2))
    size = np.sqrt(np.prod([(r[k].numpy() * z[k].numpy()).sum() for k in range(2)]))
    assert abs(one - two) < 1e-5 * size
    assert (r[0].numpy() * z[0].numpy()).sum() > 0.0


def test_a_past_saves_iterations():
    """A swinging bar whose first guesses have a past, against one whose have none; both keep their
    tangents, or the second would be compared with fresh ones, which need fewer iterations.
    """
    taken = []
    for forgetful in (False, True):
        system = ImplicitModel(replace(held_bar(spacing=0.055), gravity=(0.0, -2.0, 0.0)))
        state = system.initial_state()
        for _ in range(30):
            if forgetful:
                system.recent.forget()
            state, record = system.step(state)
            assert record.solution.residual <= record.solution.target
        late = system.newton_records[10:]
        taken.append([sum(r.iterations for r in late), sum(r.solver_iterations for r in late)])
    assert taken[0][0] <= taken[1][0]
    assert taken[0][1] < 0.8 * taken[1][1]  # measured: 141 against 183


def test_same_bits_at_walls_for_one_and_two_threads():
    before, ends = thread_count(), []
    try:
        for threads in (1, 2):
            set_threads(threads)
            system = ImplicitModel(held_bar(spacing=0.06))
            state = system.initial_state()
            for _ in range(5):
                state, _ = system.step(state)
            ends.append(np.concatenate([field.numpy() for field in state.fields()]))
    finally:
        set_threads(before)
    assert np.array_equal(*ends)


def test_a_push_from_balance_is_solved_well():
    """A load step starts in balance: that says nothing about the push of the held parts."""
    body = pl.TetBody(pl.shapes.box(center=(0, 0.5, 0), size=(0.8, 1, 0.8)), edge_length=0.11)
    ends = [pl.shapes.half_space(normal=(0, s, 0), offset=o + 1e-9) for s, o in ((1, 0), (-1, -1))]
    assert len(body.nodes) > DIRECT_NODES  # smaller ones are factorised
    held = [pl.Fixed(ends[0]), pl.Fixed(ends[1], (0.0, -0.04, 0.0))]
    scene = pl.Scene(body, gravity=(0, 0, 0), fixed=held, law="neo-hookean")
    rest = np.zeros((len(body.nodes), 3))
    _, records, _ = find_rest(ImplicitModel(scene), tolerance=1e-6, start=rest, ramp=False)
    assert sum(r.iterations for r in records) <= 3
