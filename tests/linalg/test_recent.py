"""First guesses improved by what earlier ones missed."""

import numpy as np
import pytest
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.fem.bodies.grid_body import GridBody
from pliant.fem.forces.elasticity import Elasticity
from pliant.fem.forces.mass import MassMatrix
from pliant.geometry.primitives import torus
from pliant.linalg.blocks import BlockMatrix
from pliant.linalg.recent import DEPTH, RecentErrors


@pytest.fixture(scope="module")
def matrix():
    body = GridBody(torus(major=1.0, minor=0.4), 0.2)
    free = np.ones((len(body.nodes), 3))
    free[body.nodes[:, 1] > 0.9] = 0.0
    elasticity = Elasticity(body)
    elasticity.set_material(*(np.full(len(body.cells), s) for s in (1000.0, 800.0)))
    mass = MassMatrix(body)
    mass.set_density(np.ones(len(body.cells)))
    A = BlockMatrix(body.pattern, free)
    elasticity.assemble(A, mass, mass_factor=1e4, stiffness_factor=1.0)
    return A


def field(A, seed):
    rng = np.random.default_rng(seed)
    return to_device(rng.standard_normal((A.node_count, 3)) * A.free.numpy(), wp.vec3d)


def remembering(A, errors):
    recent = RecentErrors(A.node_count)
    for e in errors:
        recent.remember(A, e, (0.0, 0.0, 0.0), (e, e, e))
    return recent


@pytest.mark.parametrize("count", [1, 3, DEPTH, DEPTH + 2])
def test_an_error_in_their_span_is_found(matrix, count):
    A, n = matrix, matrix.node_count
    errors = [field(A, seed) for seed in range(count)]
    start = field(A, 99).numpy()
    miss = 2.0 * errors[-1].numpy() - (errors[-2].numpy() if count > 1 else 0.0)
    solution, b = to_device(start + miss, wp.vec3d), zeros(n, wp.vec3d)
    A.multiply(solution, b)
    x, r, exact = to_device(start, wp.vec3d), zeros(n, wp.vec3d), zeros(n, wp.vec3d)
    before = A.residual(b, x, exact)
    square = remembering(A, errors).improve(A, b, x, r)
    assert square < 1e-12 * before  # the errors are kept in single precision
    assert np.abs(x.numpy() - solution.numpy()).max() < 1e-5
    # the solver starts from this residual: it must be that of x in double precision
    assert square == pytest.approx(A.residual(b, x, exact), rel=1e-6)
    scale = np.sqrt(before)
    assert np.abs(r.numpy() - exact.numpy()).max() < 1e-12 * scale


def test_it_never_harms(matrix):
    A = matrix
    b, x = field(A, 7), field(A, 8)
    r = zeros(A.node_count, wp.vec3d)
    before = A.residual(b, x, r)
    assert remembering(A, []).improve(A, b, to_device(x.numpy(), wp.vec3d), r) == before
    one = field(A, 1)
    same = remembering(A, [one, one, one])  # not three directions but one
    assert same.improve(A, b, x, r) <= before
    assert np.isfinite(x.numpy()).all()


def test_errors_that_follow_a_recurrence_are_foretold(matrix):
    A, n = matrix, matrix.node_count
    p, q = field(A, 1).numpy(), field(A, 2).numpy()  # a motion of one frequency
    at = [np.cos(0.3 * k) * p + np.sin(0.3 * k) * q for k in range(DEPTH + 1)]
    recent = remembering(A, [to_device(e, wp.vec3d) for e in at[:-1]])
    x = zeros(n, wp.vec3d)
    recent.predict(A, x)
    assert np.abs(x.numpy() - at[-1]).max() < 1e-5
    # what the prediction leaves is improved with the same images
    wanted, r, exact = to_device(2.0 * p - q, wp.vec3d), zeros(n, wp.vec3d), zeros(n, wp.vec3d)
    A.multiply(wanted, r)
    right, dx = to_device(r.numpy(), wp.vec3d), zeros(n, wp.vec3d)
    before = A.residual(right, dx, exact)
    square = recent.improve_correction(dx, r)
    assert square < 1e-12 * before
    assert np.abs(dx.numpy() - wanted.numpy()).max() < 1e-5
    assert square == pytest.approx(A.residual(right, dx, exact), rel=1e-6)
