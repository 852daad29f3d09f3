"""The corotated energy: its forces are its gradient, its tangent theirs, on every kind of cell."""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel

BODIES = {
    "cut grid": lambda: pl.GridBody(pl.shapes.sphere(radius=0.4, center=(0.03, 0.02, 0.01)), 0.13),
    "plane grid": lambda: pl.GridBody(pl.shapes.circle(radius=0.4, center=(0.03, 0.02)), 0.13),
    "tets": lambda: pl.TetBody(pl.shapes.box(size=(1, 0.4, 0.4)), 0.2, order=1),
    "quadratic tets": lambda: pl.TetBody(pl.shapes.box(size=(1, 0.4, 0.4)), 0.3),
    "quadratic triangles": lambda: pl.TetBody(pl.shapes.box(size=(1, 0.4)), 0.2),
}
TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


class Bent:
    """A body turned by 90 degrees, squeezed, and bent at random."""

    def __init__(self, kind, dilatation):
        body = BODIES[kind]()
        scene = pl.Scene(body, pl.Material(6e4, 0.45, 1070.0), dilatation=dilatation)
        system = ImplicitModel(scene)
        self.system, self.energy = system, system.elastic.operator
        self.energy.ghost = None  # a constant matrix, tested elsewhere
        n, rng = len(body.nodes), np.random.default_rng(0)
        self.mask = (np.arange(3) < body.dim).astype(float)
        self.X = np.zeros((n, 3))
        self.X[:, : body.dim] = body.nodes
        noise = 0.06 * body.spacing * rng.normal(size=(n, 3))
        self.u = (0.8 * self.X @ TURN.T - self.X + noise) * self.mask
        self.d, self.y = (rng.normal(size=(n, 3)) * self.mask for _ in range(2))
        self.d *= body.spacing

    def force(self, u):
        out = zeros(len(u), wp.vec3d)
        self.energy.add_force(to_device(u, wp.vec3d), out)
        return out.numpy()

    def value(self, u):
        return self.energy.energy(to_device(u, wp.vec3d))


@pytest.fixture(scope="module", params=[(k, d) for k in BODIES for d in ("mean", "pointwise")],
                ids=lambda p: f"{p[0]}, {p[1]}")  # fmt: skip
def bent(request):
    return Bent(*request.param)


def test_force_is_the_gradient_of_the_energy(bent):
    e = 1e-5
    slope = (bent.value(bent.u + e * bent.d) - bent.value(bent.u - e * bent.d)) / (2 * e)
    assert np.sum(bent.force(bent.u) * bent.d) == pytest.approx(slope, rel=1e-6)


def test_tangent_is_the_derivative_of_the_force(bent):
    e, u, d = 1e-5, bent.u, bent.d
    expected = (bent.force(u + e * d) - bent.force(u - e * d)) / (2 * e)
    found = zeros(len(u), wp.vec3d)
    bent.energy.add_force_change(to_device(u, wp.vec3d), to_device(d, wp.vec3d), found)
    assert np.abs(found.numpy() - expected).max() < 1e-7 * np.abs(expected).max()
    s = bent.system
    bent.energy.assemble(
        s.matrix, s.inertia.mass, to_device(u, wp.vec3d), mass_factor=0.0, stiffness_factor=1.0,
        project=False,
    )  # fmt: skip
    A = s.matrix.to_scipy()
    product = (A @ d.reshape(-1)).reshape(-1, 3)
    assert np.abs(product - expected).max() < 1e-7 * np.abs(expected).max()
    assert abs(A - A.T).max() < 1e-12 * abs(A).max()


def test_warped_stiffness_is_never_negative(bent):
    s = bent.system
    bent.energy.assemble(
        s.matrix, s.inertia.mass, to_device(bent.u, wp.vec3d), mass_factor=0.0,
        stiffness_factor=1.0, project=True,
    )  # fmt: skip
    A = s.matrix.to_scipy().toarray()
    assert np.linalg.eigvalsh(0.5 * (A + A.T))[0] > -1e-10 * np.abs(A).max()


def test_turned_and_moved_rest_shape_has_no_force(bent):
    moved = (bent.X @ TURN.T - bent.X + 0.3) * bent.mask
    # strains are then roundings of 1e-15, against some 0.1 where it is bent
    assert np.abs(bent.force(moved)).max() < 1e-12 * np.abs(bent.force(bent.u)).max()
    assert bent.value(moved) < 1e-24 * bent.value(bent.u)


def test_momenta_of_the_forces_vanish(bent):
    f, x = bent.force(bent.u), bent.X + bent.u
    size = np.abs(f).max() * len(f)
    assert np.abs(f.sum(axis=0)).max() < 1e-14 * size
    assert np.abs(np.cross(x, f).sum(axis=0)).max() < 1e-14 * size


def test_pull_is_the_transpose_of_the_change_by_moduli(bent):
    cells = len(bent.system.lam)
    d_p = np.random.default_rng(1).normal(size=(cells, 2))
    change = zeros(len(bent.u), wp.vec3d)
    u, still = to_device(bent.u, wp.vec3d), zeros(len(bent.u), wp.vec3d)
    bent.energy.add_force_change(u, still, change, d_p=d_p)
    pulled = bent.energy.parameter_pull(u, to_device(bent.y, wp.vec3d))
    assert np.sum(pulled * d_p) == pytest.approx(np.sum(change.numpy() * bent.y), rel=1e-11)


@pytest.mark.parametrize("stretch", [0.6, 1.0, 1.7])
def test_stretched_cells_have_the_energy_of_the_law(stretch):
    """Without bending it is V (mu |S - I|^2 + lambda/2 tr(S - I)^2), by hand."""
    body = pl.GridBody(pl.shapes.box(center=(0.2, 0.1, 0.1), size=(0.4, 0.2, 0.2)), 0.1)
    system = ImplicitModel(pl.Scene(body, pl.Material(1e3, 0.3)))
    lam, mu = 1e3 * 0.3 / (1.3 * 0.4), 1e3 / 2.6
    S = np.diag([stretch, 1.1, 0.95])
    u = body.nodes @ (TURN @ S).T - body.nodes
    e = np.diag(S) - 1.0
    expected = body.volume * (mu * np.sum(e**2) + 0.5 * lam * e.sum() ** 2)
    found = system.elastic.operator.energy(to_device(u, wp.vec3d))
    assert found == pytest.approx(expected, rel=1e-12)
