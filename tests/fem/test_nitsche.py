"""Weak walls: the penalty of each cell, coercivity over all cuts, and convergence of the wall."""

import numpy as np
import pytest

import pliant as pl
from frozen_frames import frozen_model
from pliant.fem.cutting.quadrature import facet_points
from pliant.fem.cutting.walls import SAFETY, build_walls
from pliant.geometry.field import SampledField

TABLE = {
    0.3: {1.0: 1.6618, 0.5: 1.4691, 0.1: 1.0496, 0.01: 1.0005},
    0.45: {1.0: 3.1068, 0.5: 2.8507, 0.1: 1.3894, 0.01: 1.0048},
}
"""eta h L / (lambda + 2 mu) of a trilinear cube cut parallel to a face (verification.md)."""


def slab(fill, h, layers):
    """Cells of a column: `layers` - 1 full ones and one filled to the height `fill`.

    Its sides and its bottom end on nodes (phi = 0), so that only the top is inside a cell.
    """
    z = h * (np.arange(layers + 3) - 1)
    top = h * (layers - 1 + fill)
    x = h * (np.arange(5) - 2.0)
    X, Y, Z = np.meshgrid(x, x, z, indexing="ij")
    # a wide plate: the middle columns do not see its sides
    sides = np.maximum(np.abs(X), np.abs(Y)) - 2.0 * h
    phi = np.maximum(np.maximum(Z - top, -Z), sides)
    field = SampledField(values=phi, origin=(-2 * h, -2 * h, -h), spacing=h)
    return pl.GridBody(field, subdivisions=1)


@pytest.mark.parametrize("nu", TABLE)
@pytest.mark.parametrize("eta", [1.0, 0.5, 0.1, 0.01])
def test_eigenvalue_of_a_cube_cut_parallel_to_a_face(eta, nu):
    h = 0.25
    body = slab(eta, h, layers=2)
    material = pl.Material(7.0, nu)
    lam, mu = material.lame(len(body.cells))
    points = facet_points(body)
    centre = body.nodes[body.cells].mean(axis=1)
    middle = (np.abs(centre[:, :2]) < h).all(axis=1) & (centre[:, 2] > h)
    top = (points.normal[:, 2] > 0.99) & middle[points.cell]
    walls = build_walls(body, [(points[top], np.ones(3))], dilatation="pointwise", support=0.0)
    assert body.fill[walls.cell] == pytest.approx(eta, rel=1e-9)
    # lambda and mu are held apart: a sum of two largest ratios is no less than that of both
    L = (lam[0] * walls.eta_lam + mu[0] * walls.eta_mu) / SAFETY
    scaled = L * eta * h / (lam[0] + 2 * mu[0])
    assert np.all(scaled > TABLE[nu][eta] * (1.0 - 1e-4))
    # a dilatation linear across the slab has at most (1 + 1)^2 / thickness of its square on a face
    assert walls.eta_lam == pytest.approx(SAFETY * 4.0 / (eta * h), rel=1e-9)
    if eta == 0.01:  # a thin slab: 2 eps_zz against 2 eps_zz^2
        assert walls.eta_mu == pytest.approx(SAFETY * 2.0 / (eta * h), rel=1e-3)
    held = build_walls(body, [(points[top], np.ones(3))], dilatation="mean", support=0.0)
    assert held.eta_lam == pytest.approx(SAFETY / (eta * h**3), rel=1e-9)


def smallest_eigenvalue(scene):
    """Of the held stiffness matrix, scaled to a unit diagonal."""
    s = frozen_model(scene)
    s.elasticity.assemble(s.matrix, s.inertia.mass, mass_factor=0.0, stiffness_factor=1.0)
    s.walls.operator.assemble(s.matrix, 1.0)
    free = np.flatnonzero(s.boundary.free.reshape(-1))
    K = s.matrix.to_scipy().tocsr()[free][:, free]
    d = 1.0 / np.sqrt(K.diagonal())
    A = K.multiply(d[:, None]).multiply(d[None, :]).toarray()
    return np.linalg.eigvalsh(0.5 * (A + A.T))[0]


@pytest.mark.parametrize("nu", [0.3, 0.45])
@pytest.mark.parametrize("seed", range(4))
def test_coercive_for_any_cut(seed, nu):
    """Spheres held on a random side, with fills down to rounding: always positive."""
    rng = np.random.default_rng(seed)
    center, normal = rng.uniform(-0.2, 0.2, 3), rng.normal(size=3)
    body = pl.GridBody(pl.shapes.sphere(radius=0.4, center=tuple(center)), 0.2)
    normal /= np.linalg.norm(normal)
    region = pl.shapes.half_space(
        normal=tuple(normal), offset=float(normal @ center) + rng.uniform(-0.3, 0.5)
    )
    scene = pl.Scene(body, pl.Material(2e3, nu), fixed=[pl.Fixed(region)])
    assert smallest_eigenvalue(scene) > 1e-6


@pytest.mark.parametrize("eta", [1.0, 0.3, 1e-1, 1e-2, 1e-3, 1e-4, 2e-5])
@pytest.mark.parametrize("nu", [0.3, 0.45])
def test_coercive_for_every_fill(eta, nu):
    """A plate held on the face that lies inside its last cells."""
    body = slab(eta, 0.25, layers=3)
    region = pl.shapes.half_space(normal=(0, 0, -1), offset=-0.25 * (2 + eta) + 1e-9)
    scene = pl.Scene(body, pl.Material(2e3, nu), fixed=[pl.Fixed(region)])
    assert smallest_eigenvalue(scene) > 1e-5


def test_displacement_on_the_wall_converges():
    """A disc held all around under its weight: what is left of u on the wall is second order."""
    left, spacings = [], (0.1, 0.05, 0.025)
    for h in spacings:
        body = pl.GridBody(pl.shapes.circle(radius=0.5, center=(0.013, 0.007)), h)
        scene = pl.Scene(
            body, pl.Material(2e3, 0.3, 10.0), gravity=(0, -9.81), model="linear",
            fixed=[pl.Fixed(pl.shapes.box(center=(0, 0), size=(9, 9)))],
        )  # fmt: skip
        u = pl.solve_static(scene, tolerance=1e-9)
        p = facet_points(body)
        on_wall = np.einsum("qa,qai->qi", p.shape, u[body.cells[p.cell]])
        left.append(np.sqrt((p.weight @ (on_wall**2).sum(axis=1)) / p.weight.sum()))
    assert np.polyfit(np.log(spacings), np.log(left), 1)[0] > 1.5
    assert left[-1] < 0.01 * np.abs(u).max()
