"""The matrix of a turned torus with cut cells: kept by half, and assembled with a force."""

import numpy as np
import pytest
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.fem.bodies.grid_body import GridBody
from pliant.fem.forces.elasticity import Elasticity
from pliant.fem.forces.mass import MassMatrix
from pliant.geometry.primitives import torus
from pliant.linalg.blocks import BlockMatrix, dot

BODY = GridBody(torus(major=1.0, minor=0.35), 0.2)
NODES = len(BODY.nodes)
FREE = np.where(BODY.nodes[:, :1] < -1.0, 0.0, np.ones((NODES, 3)))
FACTORS = {"mass_factor": 166.8, "stiffness_factor": 0.016}


@pytest.fixture
def elasticity():
    made = Elasticity(BODY)
    made.set_material(np.full(len(BODY.cells), 1154.0), np.full(len(BODY.cells), 769.0))
    c, s = np.cos(0.4), np.sin(0.4)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    made.rotate(to_device(BODY.nodes @ R.T - BODY.nodes, wp.vec3d))
    return made


@pytest.fixture
def mass():
    made = MassMatrix(BODY)
    made.set_density(np.ones(len(BODY.cells)))
    return made


def vector(seed):
    return to_device(np.random.default_rng(seed).standard_normal((NODES, 3)), wp.vec3d)


def test_half_of_the_matrix_is_the_same_matrix(elasticity, mass):
    whole, half = (BlockMatrix(BODY.pattern, FREE, half=h) for h in (False, True))
    x, products = vector(6), []
    for matrix in (whole, half):
        elasticity.assemble(matrix, mass, **FACTORS)
        y = zeros(NODES, wp.vec3d)
        assert matrix.multiply(x, y) == pytest.approx(dot(x, y), rel=1e-13)
        products.append(y.numpy())
    assert half.values.shape[0] < 0.6 * whole.values.shape[0]
    known = whole.to_scipy()
    assert abs(half.to_scipy() - known).max() < 1e-13 * abs(known).max()
    by_scipy = FREE * (known @ x.numpy().reshape(-1)).reshape(-1, 3)
    for y in products:
        assert np.abs(y - by_scipy).max() < 1e-13 * np.abs(by_scipy).max()


@pytest.mark.parametrize("half", [False, True])
def test_force_taken_during_the_assembly_is_that_of_the_cells(elasticity, mass, half):
    """Ghosts of the cut cells join the half that is mirrored."""
    assert BODY.ghost is not None
    apart, together = (BlockMatrix(BODY.pattern, FREE, half=half) for _ in range(2))
    elasticity.assemble(apart, mass, **FACTORS)
    w = vector(7)
    with_matrix, by_cells, scratch = (zeros(NODES, wp.vec3d) for _ in range(3))
    elasticity.assemble_and_add_force(
        together, mass, w, 0.7, with_matrix, scratch, factor=-2.0, **FACTORS
    )
    elasticity.add_force(w, 0.7, by_cells, factor=-2.0)
    assert together.values.numpy().tobytes() == apart.values.numpy().tobytes()
    known = together.to_scipy()
    assert abs(known - known.T).max() < 1e-15 * abs(known).max()  # within the diagonal's blocks
    one, two = with_matrix.numpy(), by_cells.numpy()
    assert np.abs(one - two).max() < 1e-12 * np.abs(two).max()


def test_sum_over_the_free_components():
    x, y = vector(8), vector(9)
    known = (x.numpy() * y.numpy()).sum(axis=1)
    held = FREE[:, 0] == 0.0
    assert held.any()
    assert dot(x, y) == pytest.approx(known.sum(), rel=1e-12)
    assert dot(x, y, to_device(FREE, wp.vec3d)) == pytest.approx(known[~held].sum(), rel=1e-12)
