"""Patch test: a linear field is reproduced exactly, on cut cells of any angle and on simplices.

Values of MacNeal and Harder: E = 1e6, nu = 0.25, normal stresses 2000, shear stresses 400.
"""

import numpy as np
import pytest

import pliant as pl
from oblique import oblique_body

GRADIENT = 0.5e-3 * np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
STEEL = pl.Material(youngs_modulus=1e6, poisson_ratio=0.25)
EVERYWHERE = pl.shapes.box(center=(0, 0, 0), size=(10, 10, 10))


def linear_field(points, t=0.0):
    dim = points.shape[1]
    return points @ GRADIENT[:dim, :dim].T


def check(body, tolerance=1e-10):
    region = EVERYWHERE if body.dim == 3 else pl.shapes.box(center=(0, 0), size=(10, 10))
    scene = pl.Scene(
        body, STEEL, gravity=(0, 0, 0), model="linear", tolerance=1e-13,
        fixed=[pl.Fixed(region, displacement=linear_field)],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-13)
    exact = linear_field(body.nodes)
    assert np.abs(u - exact).max() / np.abs(exact).max() < tolerance
    return u


def turned_box(seed):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    box = pl.shapes.box(center=(0, 0, 0), size=(1, 1, 1))
    return box.rotated(axis=axis, angle=rng.uniform(0, np.pi)).translated(rng.uniform(-0.1, 0.1, 3))


@pytest.mark.parametrize("seed", range(4))
def test_cut_cells_at_any_angle(seed):
    check(oblique_body(turned_box(seed), 0.173))


def test_round_cut_cells():
    check(pl.GridBody(pl.shapes.sphere(radius=0.55), 0.11))


def test_plane_strain_cut_cells():
    shape = pl.shapes.box(center=(0, 0), size=(1, 1)).rotated(angle=0.3)
    check(oblique_body(shape, 0.13))
    check(oblique_body(shape, 0.13, subdivisions=3))


def test_subdivided_cells():
    check(oblique_body(turned_box(0), 0.211, subdivisions=2))


def test_tetrahedra_with_distorted_inner_nodes():
    rng = np.random.default_rng(0)
    ticks = np.linspace(-0.5, 0.5, 4)
    nodes = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), -1).reshape(-1, 3)
    inner = (np.abs(nodes) < 0.49).all(axis=1)
    nodes[inner] += rng.uniform(-0.07, 0.07, (inner.sum(), 3))
    cells = []
    for i in range(3):
        for j in range(3):
            for k in range(3):
                bits = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
                corner = [((i + a) * 4 + j + b) * 4 + k + c for a, b, c in bits]
                for p in ((0, 1, 3, 7), (0, 3, 2, 7), (0, 2, 6, 7), (0, 6, 4, 7), (0, 4, 5, 7),
                          (0, 5, 1, 7)):  # fmt: skip
                    cells.append([corner[q] for q in p])
    check(pl.TetBody((nodes, np.array(cells))))


def test_stress_of_the_patch():
    lam, mu = STEEL.lame(1)
    strain = 0.5 * (GRADIENT + GRADIENT.T)
    stress = lam[0] * np.trace(strain) * np.eye(3) + 2 * mu[0] * strain
    assert np.diag(stress) == pytest.approx(2000.0)
    assert stress[0, 1] == pytest.approx(400.0)


def test_traction_side_of_the_patch():
    """Held on one half, pulled by the exact traction on the other: still exact."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.55, center=(0.02, 0.01, 0.03)), 0.12)
    stress = 2000.0 * np.eye(3) + 400.0 * (1 - np.eye(3))
    scene = pl.Scene(
        body, STEEL, gravity=(0, 0, 0), model="linear", tolerance=1e-13,
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.0), linear_field)],
        loads=[pl.Traction(
            pl.shapes.half_space(normal=(-1, 0, 0), offset=-1e-12), lambda x, n: n @ stress
        )],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-13)
    assert np.abs(u - linear_field(body.nodes)).max() / np.abs(u).max() < 1e-10
