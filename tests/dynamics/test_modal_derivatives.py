"""Modal derivatives against differences of the force, and what they are good for."""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.errors import PliantError
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.modal_derivatives import (
    ForceDerivatives,
    energy_derivative,
    isotropic_derivative,
    modal_derivatives,
    rest_coefficients,
)
from pliant.fem.laws import LAWS


@pl.energy
def guarding_even(F, p):
    """Volume guarding with the mean of its two sides, which is smooth, for both."""
    J = pl.laws.det(F)
    shape = p.mu * (J ** (-2.0 / 3.0) * pl.laws.first_invariant(F) - 3)
    return shape + p.lam / 4 * (np.log(3 - 2 * J) ** 2 + np.log(2 * J - 1) ** 2)


@pl.energy
def fibre(F, p):
    """Stiffer along x: no function of the stretches."""
    J, along = pl.laws.det(F), F[0, 0] ** 2 + F[1, 0] ** 2 + F[2, 0] ** 2
    soft = p.mu / 2 * (pl.laws.first_invariant(F) - 3 - 2 * np.log(J)) + p.k / 2 * (J - 1) ** 2
    return soft + p.fibre / 4 * (along - 1) ** 2


def beam(law):
    box = pl.shapes.box(center=(0.5, 0, 0), size=(1.0, 0.1, 0.1))
    body = pl.TetBody(box, edge_length=0.1, order=1)
    held = pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=1e-6))
    law = LAWS[law].from_moduli(1e4, 0.3) if isinstance(law, str) else law
    return pl.Scene(body, gravity=(0, 0, 0), fixed=[held], law=law)


def force(system, u):
    out = zeros(system.node_count, wp.vec3d)
    system.elastic.operator.add_force(to_device(u, wp.vec3d), out)
    return out.numpy()


CELLS = len(beam("neo-hookean").body.cells)


def difference_weights(order, reach=4):
    """Central differences over 2 reach + 1 points: (points, weights)."""
    x = np.arange(-reach, reach + 1.0)
    right = np.zeros(len(x))
    right[order] = [1, 1, 2, 6][order]
    return x, np.linalg.solve(np.vander(x, increasing=True).T, right)


def force_terms(system, a, h):
    """Second and third derivative of the force along a, by nine-point differences."""
    out = []
    for order in (2, 3):
        x, weights = difference_weights(order)
        f = np.array([force(system, t * h * a) for t in x])
        out.append(np.tensordot(weights, f, 1) / h**order)
    return out


SMOOTH = {n: LAWS[n].from_moduli(1e4, 0.3) for n in LAWS if n != "volume-guarding"} | {
    "ogden of odd powers": LAWS["ogden"](
        mu1=np.linspace(2e3, 5e3, CELLS), alpha1=1.3, mu2=-1e3, alpha2=-3.1, kappa=9e3
    ),
    "invertible": LAWS["neo-hookean"].from_moduli(1e4, 0.3, invertible=True),
    "fibre": fibre(mu=4e3, k=9e3, fibre=2e4),
}


@pytest.mark.parametrize("name", [
    name if name in ("ogden", "fibre") else pytest.param(name, marks=pytest.mark.slow)
    for name in (*SMOOTH, "volume-guarding")
])  # fmt: skip
def test_third_and_fourth_derivatives_of_the_energy(name):
    """K'[a] a and K''[a, a] a are the quadratic and cubic terms of the force along a."""
    scene = beam(SMOOTH.get(name, name))
    system = ImplicitModel(scene)
    a = 0.05 * np.random.default_rng(0).standard_normal((system.node_count, 3))
    along = ForceDerivatives(system)
    if name == "volume-guarding":
        system = ImplicitModel(beam(guarding_even(**scene.law.values)))
    second, third = force_terms(system, a, 2e-3)
    assert np.abs(along(a, a) - second).max() < 1e-9 * np.abs(second).max()
    assert np.abs(along(a, a, a) - third).max() < 1e-7 * np.abs(third).max()


def test_a_kink_has_the_mean_of_its_sides():
    """|J - 1|^3 of volume guarding: central differences of its own force come closer with h."""
    system = ImplicitModel(beam("volume-guarding"))
    a = 0.05 * np.random.default_rng(0).standard_normal((system.node_count, 3))
    exact = ForceDerivatives(system)(a, a)
    errors = []
    for h in (1e-3, 1e-4):
        second = (force(system, h * a) - 2 * force(system, 0 * a) + force(system, -h * a)) / h**2
        errors.append(np.abs(second - exact).max() / np.abs(exact).max())
    assert errors[0] < 0.05
    assert errors[1] < 0.15 * errors[0]


@pytest.mark.parametrize("name", [n for n in LAWS if LAWS[n].full is not None])
def test_taylor_polynomial_and_steps_of_the_energy_agree(name):
    """Two ways to the same derivatives, and the small-strain stiffness as the first of them."""
    law = LAWS[name].from_moduli(1e4, 0.3)
    rest = rest_coefficients(law)
    D = list(np.random.default_rng(1).standard_normal((3, 7, 1, 3, 3)))
    for n in (1, 2, 3) if name != "volume-guarding" else (1,):
        found = isotropic_derivative(rest, D[:n])
        assert found == pytest.approx(
            energy_derivative(law, D[:n]), rel=1e-11, abs=1e-12 * np.abs(found).max()
        )


@pytest.mark.parametrize("name", list(LAWS))
def test_every_law_has_modal_derivatives(name):
    found = modal_derivatives(beam(name), 1, order=2)
    for field in (found.first[0, 0], found.second[0, 0, 0]):
        assert np.isfinite(field).all()
        assert np.abs(field).max() > 0.0


def test_an_energy_without_third_derivatives_says_so():
    def rooted(F, p):
        J = pl.laws.det(F)
        root = p.soft * ((J - 1) ** 2) ** 1.25
        return p.mu / 2 * (pl.laws.first_invariant(F) - 3 - 2 * np.log(J)) + root

    def turned(F, p):
        return rooted(F, p) + p.mu * (F[0, 0] - 1) ** 2

    laws = [
        pl.energy(f, lame=lambda p: (0.0 * p.mu, p.mu))(mu=4e3, soft=1e2) for f in (rooted, turned)
    ]
    assert [law.energy.isotropic for law in laws] == [True, False]
    with pytest.raises(PliantError, match="'rooted' has no finite derivative of order 3"):
        modal_derivatives(beam(laws[0]), 1)
    system = ImplicitModel(beam(laws[1]))
    a = np.random.default_rng(0).standard_normal((system.node_count, 3))
    with pytest.raises(PliantError, match="'turned' has no finite derivative of order 3"):
        ForceDerivatives(system)(a, a)


def test_derivatives_bend_without_stretching():
    """A bent mode alone stretches the beam; with its derivative the energy is that of bending."""
    scene = beam("st-venant-kirchhoff")
    system = ImplicitModel(scene)
    found = modal_derivatives(scene, 2)
    phi = np.zeros((system.node_count, 3))
    phi[:] = found.modes.shapes[0]
    q = 0.3 / np.abs(phi).max()

    def energy(u):
        return system.elastic.operator.energy(to_device(u, wp.vec3d))

    small = energy(1e-4 * q * phi) / 1e-8
    plain = energy(q * phi) / small
    better = energy(q * phi + 0.5 * q * q * found.first[0, 0]) / small
    assert plain > 5.0
    assert better < 1.5


def test_second_order_extends_the_first():
    scene = beam("neo-hookean")
    system = ImplicitModel(scene)
    found = modal_derivatives(scene, 1, order=2)
    phi = np.zeros((system.node_count, 3))
    phi[:] = found.modes.shapes[0]
    K = 2.0 * np.pi * found.modes.frequencies[0]

    def imbalance(q):
        """Force left over beside the push along the mode, w^2 M phi q."""
        u = q * phi + 0.5 * q**2 * found.first[0, 0]
        v = u + q**3 / 6.0 * found.second[0, 0, 0]
        push = q * K**2 * system.masses[:, None] * phi
        free = system.boundary.free
        return [np.linalg.norm((force(system, x) - push) * free) for x in (u, v)]

    sizes = np.array([imbalance(s * 0.02 / np.abs(phi).max()) for s in (1.0, 0.5)])
    rates = np.log2(sizes[0] / sizes[1])
    assert rates[0] == pytest.approx(3.0, abs=0.3)
    assert rates[1] == pytest.approx(4.0, abs=0.4)
    basis = found.basis(system.masses)
    gram = np.einsum("n,ani,bni->ab", system.masses, basis, basis)
    assert gram == pytest.approx(np.eye(len(basis)), abs=1e-10)
