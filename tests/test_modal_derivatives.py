"""Modal derivatives against differences of the force, and what they are good for."""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.law_system import LawSystem
from pliant.dynamics.modal_derivatives import ForceDerivatives, modal_derivatives
from pliant.fem.laws import LAWS


def beam(name):
    body = pl.TetBody(pl.shapes.box(center=(0.5, 0, 0), size=(1.0, 0.1, 0.1)), edge_length=0.1)
    held = pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=1e-6))
    return pl.Scene(body, gravity=(0, 0, 0), fixed=[held], law=LAWS[name].from_moduli(1e4, 0.3))


def force(system, u):
    out = zeros(system.node_count, wp.vec3d)
    system.hyper.add_force(to_device(u, wp.vec3d), out)
    return out.numpy()


@pytest.mark.parametrize("name", ["neo-hookean", "mooney-rivlin", "st-venant-kirchhoff"])
def test_third_and_fourth_derivatives_of_the_energy(name):
    """K'[a] a and K''[a, a] a are the quadratic and cubic terms of the force along a."""
    scene = beam(name)
    system = LawSystem(scene)
    a = 0.05 * np.random.default_rng(0).standard_normal((system.node_count, 3))
    along = ForceDerivatives(system)
    h = np.array([-2, -1, 0, 1, 2]) * 2e-3
    f = np.array([force(system, x * a) for x in h])
    second = np.tensordot([-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12], f, 1) / 4e-6
    third = np.tensordot([-1 / 2, 1, 0, -1, 1 / 2], f, 1) / 8e-9
    size = np.abs(second).max()
    assert np.abs(along(a, a) - second).max() < 1e-5 * size
    assert np.abs(along(a, a, a) - third).max() < 2e-3 * np.abs(third).max()


def test_derivatives_bend_without_stretching():
    """A bent mode alone stretches the beam; with its derivative the energy is that of bending."""
    scene = beam("st-venant-kirchhoff")
    system = LawSystem(scene)
    found = modal_derivatives(scene, 2)
    phi = np.zeros((system.node_count, 3))
    phi[:] = found.modes.shapes[0]
    q = 0.3 / np.abs(phi).max()

    def energy(u):
        return system.hyper.energy(to_device(u, wp.vec3d))

    small = energy(1e-4 * q * phi) / 1e-8
    plain = energy(q * phi) / small
    better = energy(q * phi + 0.5 * q * q * found.first[0, 0]) / small
    assert plain > 5.0
    assert better < 1.5


def test_second_order_extends_the_first():
    scene = beam("neo-hookean")
    system = LawSystem(scene)
    found = modal_derivatives(scene, 1, order=2)
    phi = np.zeros((system.node_count, 3))
    phi[:] = found.modes.shapes[0]
    K = 2.0 * np.pi * found.modes.frequencies[0]

    def imbalance(q):
        """Force left over beside the push along the mode, w^2 M phi q."""
        u = q * phi + 0.5 * q**2 * found.first[0, 0]
        v = u + q**3 / 6.0 * found.second[0, 0, 0]
        push = q * K**2 * system.mass_host[:, None] * phi
        free = system.boundary.free
        return [np.linalg.norm((force(system, x) - push) * free) for x in (u, v)]

    sizes = np.array([imbalance(s * 0.02 / np.abs(phi).max()) for s in (1.0, 0.5)])
    rates = np.log2(sizes[0] / sizes[1])
    assert rates[0] == pytest.approx(3.0, abs=0.3)
    assert rates[1] == pytest.approx(4.0, abs=0.4)
    basis = found.basis(system.mass_host)
    gram = np.einsum("n,ani,bni->ab", system.mass_host, basis, basis)
    assert gram == pytest.approx(np.eye(len(basis)), abs=1e-10)
