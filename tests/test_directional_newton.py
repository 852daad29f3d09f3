"""Newton's method with products along directions (seed 004, eq. 4.37) instead of a matrix."""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.law_statics import StaticProblem, solve_law_static
from pliant.dynamics.law_system import LawSystem
from pliant.dynamics.step_problem import StepProblem
from pliant.fem.laws import LAWS


@pl.energy
def fibred(F, p):
    """Given by its energy only, with a direction."""
    J = pl.laws.det(F)
    I4 = F[0, 0] ** 2 + F[1, 0] ** 2 + F[2, 0] ** 2
    matrix = p.mu / 2 * (pl.laws.first_invariant(F) - 3 - 2 * np.log(J))
    return matrix + p.k / 2 * np.log(J) ** 2 + p.fibre / 4 * (I4 - 1) ** 2


LAWS_HERE = {
    "own energy": fibred(mu=800.0, k=1200.0, fibre=500.0),
    "mooney-rivlin": LAWS["mooney-rivlin"].from_moduli(2e3, 0.3),
    "ogden": LAWS["ogden"].from_moduli(2e3, 0.3),  # in the stretches: by the change of the stress
}


def scene_of(law, kind="grid", **options):
    body = pl.GridBody(pl.shapes.sphere(radius=0.3, center=(0.33, 0.1, 0.11)), 0.17)
    if kind == "tets":
        shape = pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2))
        body = pl.TetBody(shape, edge_length=0.1)
    held = [pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.1))]
    plane = [pl.Plane(offset=-0.19)]
    material = pl.Material(2e3, 0.3, density=5.0, mass_damping=0.1, stiffness_damping=0.01)
    both = {"fixed": held, "obstacles": plane, "tolerance": 1e-10, **options}
    return pl.Scene(body, material, law=law, **both)


@pytest.mark.parametrize("name", list(LAWS_HERE))
@pytest.mark.parametrize("what", ["step", "rest"])
def test_products_equal_the_assembled_tangent(name, what):
    system = LawSystem(scene_of(LAWS_HERE[name]))
    state, n = system.initial_state(), system.node_count
    rng = np.random.default_rng(1)
    x = to_device(0.02 * rng.standard_normal((n, 3)), wp.vec3d)
    problem = StaticProblem(system)
    if what == "step":
        problem = StepProblem(system, state, system.scene.integrator)
    problem.assemble(x, project=False)
    problem.linearise(x)
    p, by_matrix, along = to_device(rng.standard_normal((n, 3)), wp.vec3d), *(
        zeros(n, wp.vec3d) for _ in range(2)
    )
    system.matrix.multiply(p, by_matrix, masked=False)
    problem.multiply(p, along)
    a, b = by_matrix.numpy(), along.numpy()
    assert np.abs(a - b).max() < 1e-10 * np.abs(a).max()


@pytest.mark.parametrize("name", list(LAWS_HERE))
def test_the_same_steps(name):
    runs, tangents = [], []
    for tangent in ("assembled", "directional"):
        system = LawSystem(scene_of(LAWS_HERE[name], "tets"), tangent=tangent)
        runs.append(pl.simulate(system.scene, 4, system=system).displacements)
        tangents.append(sum(r.tangents for r in system.newton_records))
    assert np.abs(runs[0]).max() > 1e-3
    assert np.abs(runs[1] - runs[0]).max() < 1e-7 * np.abs(runs[0]).max()
    assert tangents[1] <= 2  # one preconditioner serves


def test_the_same_rest():
    found = []
    for tangent in ("assembled", "directional"):
        system = LawSystem(scene_of(LAWS_HERE["own energy"], "tets"), tangent=tangent)
        found.append(solve_law_static(system, tolerance=1e-10)[0])
    assert np.abs(found[1] - found[0]).max() < 1e-8 * np.abs(found[0]).max()


def test_unknown_ways_are_refused():
    with pytest.raises(pl.BadInput, match="tangent must be one of"):
        LawSystem(scene_of(LAWS_HERE["ogden"]), tangent="sideways")
