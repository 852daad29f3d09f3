"""Stress of laws in motions whose Cauchy stress is known in closed form."""

import numpy as np
import pytest

import pliant as pl
from pliant.fem.forces.law_stress import LawStress
from pliant.fem.laws import LAWS

E, NU = 3.0e4, 0.3


def body_of(kind):
    shape = pl.shapes.box(center=(0.513, 0.327, 0.241), size=(1.0, 0.6, 0.4))
    return pl.TetBody(shape, edge_length=0.3) if kind == "tets" else pl.GridBody(shape, 0.2)


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("kind", ["grid", "tets"])
def test_neo_hookean_stretch(kind):
    """psi = mu/2 (I1 - 3) - mu ln J + lambda/2 ln^2 J: s_i = (mu (l_i^2 - 1) + lambda ln J) / J."""
    body, l = body_of(kind), np.array([1.4, 0.9, 0.8])
    law = LAWS["neo-hookean"].from_moduli(E, NU)
    lam, mu = law.lame()
    J = l.prod()
    s = (mu * (l**2 - 1.0) + lam * np.log(J)) / J
    expected = np.sqrt(0.5 * ((s - np.roll(s, 1)) ** 2).sum())
    psi = mu / 2 * ((l**2).sum() - 3) - mu * np.log(J) + lam / 2 * np.log(J) ** 2
    F = turn(0.8) @ np.diag(l) @ turn(-1.9)
    found = LawStress(body, law).at(body.nodes @ F.T - body.nodes)
    np.testing.assert_allclose(found.von_mises, expected, rtol=1e-9)
    np.testing.assert_allclose(found.energy_density, psi, rtol=1e-9)


@pytest.mark.parametrize("name", ["neo-hookean", "st-venant-kirchhoff"])
def test_small_strains_agree_with_linear_elasticity(name):
    body, rng = body_of("grid"), np.random.default_rng(3)
    F = np.eye(3) + 1e-6 * rng.standard_normal((3, 3))
    u = body.nodes @ F.T - body.nodes
    material = pl.Material(E, NU)
    linear = pl.Scene(body, material=material).stress().at(u)
    lawful = pl.Scene(body, material=material, law=name).stress().at(u)
    np.testing.assert_allclose(lawful.von_mises, linear.von_mises, rtol=1e-4)
    np.testing.assert_allclose(lawful.energy_density, linear.energy_density, rtol=1e-4)


def test_a_turn_has_no_stress():
    body = body_of("grid")
    found = LawStress(body, LAWS["neo-hookean"].from_moduli(E, NU))
    assert found.at(body.nodes @ turn(2.0).T - body.nodes).von_mises.max() < 1e-9 * E


def test_pictures_and_exports_show_the_law(tmp_path):
    """Stretched to twice its length, sides held: s_x - s_y = 3 mu / 2 of a neo-Hookean body."""
    import meshio

    from pliant.app.formats.sequence import write_cell_sequence
    from pliant.app.render.colouring import Colouring
    from pliant.dynamics.trajectory import Trajectory

    body = body_of("grid")
    u = body.nodes * [1.0, 0.0, 0.0]
    scene = pl.Scene(body, material=pl.Material(E, NU), law="neo-hookean")
    expected = 1.5 * E / (2.0 * (1.0 + NU))
    np.testing.assert_allclose(Colouring(scene, "stress").at_nodes(u), expected, rtol=1e-9)
    run = Trajectory(scene, np.zeros(1), u[None], 0.0 * u[None], 0.0 * u, np.zeros(0, int))
    write_cell_sequence(tmp_path, run)
    written = meshio.read(tmp_path / "frame_000000.vtu").cell_data["von_mises"][0]
    np.testing.assert_allclose(written, expected, rtol=1e-9)
