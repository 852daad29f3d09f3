"""The iteration alone, over dense matrices in NumPy: what it must find, and how it must end."""

import numpy as np
import pytest

from pliant.core.solution import Outcome
from pliant.linalg.conjugate_gradients import RESTARTS, Column, Tolerance, iterate

N = 12


class Dense:
    """Passes over columns of a dense system, preconditioned by the diagonal."""

    def __init__(self, A, b, drift=0.0):
        self.A, self.b, self.drift = A, b, drift
        self.x, self.r, self.p, self.q = (np.zeros_like(b) for _ in range(4))
        self.passes = 0

    def residual(self):
        self.r = self.b - self.A @ self.x
        return (self.r**2).sum(axis=0)

    def curvature(self):
        self.passes += 1
        self.z = self.r / np.abs(np.diag(self.A))[:, None]
        self.w = self.A @ self.z
        return (self.r * self.z).sum(axis=0), (self.z * self.w).sum(axis=0)

    def advance(self, alpha, beta):
        self.p = self.z + np.array(beta) * self.p
        self.q = self.w + np.array(beta) * self.q
        self.x = self.x + np.array(alpha) * self.p
        self.r = (1.0 - self.drift) * (self.r - np.array(alpha) * self.q)
        return (self.r**2).sum(axis=0)


def matrix(seed=1):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(N, N)))[0]
    return Q @ np.diag(np.linspace(1.0, 9.0, N)) @ Q.T


def solve(passes, tolerance=1e-10, limit=100, **options):
    targets = tolerance * np.linalg.norm(passes.b, axis=0)
    columns = [Column(float(t), limit) for t in targets]
    iterate(columns, passes, **options)
    return columns


def test_as_many_iterations_as_unknowns_at_most():
    A, b = matrix(), np.random.default_rng(2).normal(size=(N, 1))
    passes = Dense(A, b)
    (column,) = solve(passes)
    assert column.outcome is Outcome.CONVERGED
    assert column.iterations <= N
    assert len(column.history) == column.iterations + 1
    assert np.allclose(passes.x, np.linalg.solve(A, b), rtol=1e-9)


def test_a_column_does_not_feel_its_company():
    A, b = matrix(), np.random.default_rng(3).normal(size=(N, 3))
    b[:, 1] = A[:, 0] / np.diag(A)  # another number of iterations
    together = Dense(A, b)
    columns = solve(together)
    for c, column in enumerate(columns):
        alone = Dense(A, b[:, [c]])
        (single,) = solve(alone)
        assert single.iterations == column.iterations
        assert np.allclose(together.x[:, c], alone.x[:, 0], rtol=1e-13)


def test_a_finished_column_stays_as_it_is():
    A, b = matrix(), np.random.default_rng(3).normal(size=(N, 2))
    b[:, 0] = 0.0
    passes = Dense(A, b)
    done, other = solve(passes)
    assert (done.outcome, done.iterations) == (Outcome.CONVERGED, 0)
    assert other.iterations > 5
    assert not passes.x[:, 0].any()


def test_a_drifting_residual_is_found_out():
    """The recursive residual falls faster than the true one: it is recomputed, and started anew."""
    A, b = matrix(), np.random.default_rng(2).normal(size=(N, 1))
    passes = Dense(A, b, drift=0.05)
    (column,) = solve(passes, 1e-6)
    assert column.outcome is Outcome.CONVERGED
    assert np.linalg.norm(b - A @ passes.x) <= 1e-6 * np.linalg.norm(b)
    trusting = Dense(A, b, drift=0.05)
    (believed,) = solve(trusting, 1e-6, check=False)
    assert believed.outcome is Outcome.CONVERGED
    assert np.linalg.norm(b - A @ trusting.x) > 1e-6 * np.linalg.norm(b)
    assert believed.iterations < column.iterations


@pytest.mark.parametrize(
    ("change", "limit", "outcome"),
    [
        (lambda A: A, 3, Outcome.ITERATION_LIMIT),
        (lambda A: -A, 100, Outcome.INDEFINITE),
        (lambda A: np.where(np.eye(N) > 0, np.nan, A), 100, Outcome.NOT_FINITE),
    ],
)
def test_how_it_ends(change, limit, outcome):
    b = np.random.default_rng(2).normal(size=(N, 1))
    (column,) = solve(Dense(change(matrix()), b), limit=limit)
    assert column.outcome is outcome
    assert column.iterations <= 3


def test_a_target_below_rounding_stagnates():
    A, b = matrix(), np.random.default_rng(2).normal(size=(N, 1))
    passes = Dense(A, b)
    (column,) = solve(passes, 1e-30)
    assert column.outcome is Outcome.STAGNATED
    assert passes.passes < 100
    assert column._restarts <= RESTARTS + 1


def test_a_given_start_is_not_computed_again():
    A, b = matrix(), np.random.default_rng(2).normal(size=(N, 1))
    passes = Dense(A, b)
    squares = passes.residual()
    passes.residual = None  # would fail if it were called
    (column,) = solve(passes, squares=squares, check=False)
    assert column.outcome is Outcome.CONVERGED


def test_targets_are_not_below_rounding():
    assert Tolerance(relative=0.0).target(2.0) == 2e-14
    assert Tolerance(relative=1e-6, absolute=1e-3).target(2.0) == 1e-3


def test_what_is_not_finite_has_no_finite_residual():
    """Newton's method looks at the residual to see whether a step is of any use."""
    A, b = matrix(), np.random.default_rng(2).normal(size=(N, 1))
    passes = Dense(A, b)
    curvature = passes.curvature

    def overflowing():
        rz, zw = curvature()
        return (rz, zw) if passes.passes < 4 else (rz * np.inf, zw)

    passes.curvature = overflowing
    (column,) = solve(passes)
    assert column.outcome is Outcome.NOT_FINITE
    assert column.iterations == 3
    assert np.isnan(column.norm)
