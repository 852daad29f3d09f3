"""The mass matrix: exact moments, waves of the right speed, momenta."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.implicit import ImplicitModel

DENSITY = 1070.0


def block(spacing, at=(0.0, 0.0, 0.0)):
    return pl.GridBody(pl.shapes.box(center=at, size=(1.0, 0.7, 0.4)), spacing)


def matrix(body):
    scene = pl.Scene(body, pl.Material(1e4, 0.3, DENSITY))
    return ImplicitModel(scene).inertia.mass


@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (0.013, 0.027, 0.041)])
def test_inertia_is_three_quarters_of_the_way_from_lumped_to_exact(at):
    """Of a rigid turn: lumping adds h^2/6 to the mean square distance along an axis."""
    body = block(0.1, at)
    mass = matrix(body)
    x = body.nodes[:, 0] - at[0]
    exact = DENSITY * body.volume / 12.0  # of a side of 1 m
    lumped, mean = mass.lumped @ x**2, x @ (mass.to_scipy() @ x)
    assert mass.lumped.sum() == pytest.approx(DENSITY * 0.28, rel=1e-9)
    assert mean - exact == pytest.approx(0.25 * (lumped - exact), rel=1e-6)
    if not any(at):
        assert lumped - exact == pytest.approx(DENSITY * body.volume * 0.01 / 6.0, rel=1e-9)


def test_rows_sum_up_to_the_lumped_masses_and_slivers_keep_a_quarter():
    """To the last bits, or free fall would not be exact; positive however cells are cut."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.5, center=(0.013, 0.021, 0.034)), 0.11)
    assert body.fill.min() < 1e-3
    mass = matrix(body)
    M = mass.to_scipy()
    rows = np.asarray(M.sum(axis=1))[:, 0]
    assert np.abs(rows - mass.lumped).max() < 1e-15 * mass.lumped.max()
    assert abs(M - M.T).max() < 1e-18 * mass.lumped.max()
    root = 1.0 / np.sqrt(mass.lumped)
    values = np.linalg.eigvalsh(root[:, None] * M.toarray() * root)
    assert values[0] > 0.25 - 1e-6
    assert values[-1] < 1.0 + 1e-6


def test_waves_along_the_grid():
    """A rod of Poisson's ratio 0: cos(k x) moves as a chain of masses and springs does.

    w^2 = (2 c sin(k h / 2) / h)^2 / (1 - 2/3 s sin^2(k h / 2)), s = 3/4 the consistent share.
    """
    errors = []
    for cells in (8, 16):
        h = 1.0 / cells
        shape = pl.shapes.box(center=(0.5, h / 2, h / 2), size=(1.0, h, h))
        scene = pl.Scene(pl.GridBody(shape, h), pl.Material(1.0, 0.0, 1.0))
        system = ImplicitModel(scene)
        s = system
        s.elasticity.assemble(s.matrix, s.inertia.mass, mass_factor=0.0, stiffness_factor=1.0)
        K, M = s.matrix.to_scipy(), s.inertia.mass.to_scipy()
        wave = np.zeros((s.node_count, 3))
        wave[:, 0] = np.cos(2.0 * np.pi * scene.body.nodes[:, 0])
        stiff = wave.ravel() @ (K @ wave.ravel())
        ratio = stiff / (wave[:, 0] @ (M @ wave[:, 0])) / (2.0 * np.pi) ** 2
        sine = np.sin(np.pi * h) ** 2
        assert ratio == pytest.approx(sine / (np.pi * h) ** 2 / (1.0 - 0.5 * sine), rel=1e-6)
        errors.append(abs(ratio - 1.0))
    assert errors[0] < 0.03
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)


def test_simplices_are_lumped():
    mass = matrix(pl.TetBody(pl.shapes.box(center=(0, 0, 0), size=(1, 1, 1)), edge_length=0.5))
    assert mass.is_lumped
    assert mass.to_scipy().nnz == len(mass.lumped)
