"""Von Mises stress and energy of motions whose stress is known."""

import numpy as np
import pytest

import pliant as pl
from pliant.fem.forces.stress import StressField, to_nodes

E, NU = 3.0e4, 0.3


def body_of(kind):
    shape = pl.shapes.box(center=(0.513, 0.327, 0.241), size=(1.0, 0.6, 0.4))
    if kind == "tets":
        return pl.TetBody(shape, edge_length=0.25)
    return pl.GridBody(shape, 0.2)


def turn(angle, axis):
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    K = np.cross(np.eye(3), axis) * -1.0
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


@pytest.mark.parametrize("kind", ["grid", "tets"])
@pytest.mark.parametrize("stretch", [0.8, 1.0, 1.5])
def test_uniaxial_stress_is_e_times_strain_in_any_orientation(kind, stretch):
    body = body_of(kind)
    e = stretch - 1.0
    F = turn(1.1, (1, 2, -1)) @ np.diag([stretch, 1.0 - NU * e, 1.0 - NU * e])
    lam, mu = pl.Material(E, NU).lame(len(body.cells))
    found = StressField(body).at(body.nodes @ F.T - body.nodes, lam, mu)
    np.testing.assert_allclose(found.von_mises, abs(E * e), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(found.energy_density, 0.5 * E * e**2, rtol=1e-10, atol=1e-8)


def test_linear_shear_has_root_three_times_the_shear_stress():
    body = body_of("grid")
    gamma = 0.02
    u = np.zeros_like(body.nodes)
    u[:, 0] = gamma * body.nodes[:, 1]
    lam, mu = pl.Material(E, NU).lame(len(body.cells))
    found = StressField(body, model="linear").at(u, lam, mu)
    np.testing.assert_allclose(found.von_mises, np.sqrt(3.0) * mu * gamma, rtol=1e-10)


def test_hydrostatic_pressure_has_none():
    body = body_of("grid")
    lam, mu = pl.Material(E, NU).lame(len(body.cells))
    assert StressField(body).at(-0.1 * body.nodes, lam, mu).von_mises.max() < 1e-8 * E


def test_plane_strain_uniaxial():
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.5), size=(1.0, 1.0)), 0.25)
    e = 0.1  # s_yy = 0, so s_xx = E e / (1 - nu^2), s_zz = nu s_xx
    u = body.nodes * [e, -NU / (1.0 - NU) * e]
    lam, mu = pl.Material(E, NU).lame(len(body.cells))
    s = E * e / (1.0 - NU**2)
    expected = s * np.sqrt(1.0 - NU + NU**2)
    found = StressField(body).at(u, lam, mu).von_mises
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_average_to_nodes_keeps_a_constant():
    body = body_of("grid")
    np.testing.assert_allclose(to_nodes(body, np.full(len(body.cells), 7.0)), 7.0, rtol=1e-12)
