"""Derivatives of direct forward advection: Taylor rates, and tangent against adjoint."""

import numpy as np
import pytest
from moved_bodies import bend, ellipsoid

from pliant.core.launch import set_threads, thread_count
from pliant.levelset.advection import following_grid
from pliant.levelset.forward_advection import forward_advect
from pliant.levelset.forward_advection_adjoint import adjoint, tangent


@pytest.fixture(scope="module", params=[(2, 0.1), (3, 0.15)], ids=["2D", "3D"])
def case(request):
    dim, h = request.param
    _, _, samples = ellipsoid(dim, h)
    nodes = samples.nodes
    u = bend(nodes) - nodes
    grid = following_grid(samples, u)
    rng = np.random.default_rng(5)
    return grid, grid.cells(nodes + u), samples.phi, rng


def advected(case, places, phi):
    return forward_advect(places, phi, case[0].shape, background=(1e-3, 6.0))


def test_taylor(case):
    """|J(p + e d) - J(p) - e dJ.d| falls as e^2, for J = 1/2 |phi|^2."""
    _, places, phi, rng = case
    found = advected(case, places, phi)
    smooth = np.sin(places) @ rng.standard_normal((places.shape[1], places.shape[1]))
    phi_dot = rng.standard_normal(len(phi))
    p_bar, v_bar = adjoint(found, found.values)
    slope = np.vdot(p_bar, smooth) + np.vdot(v_bar, phi_dot)
    J = 0.5 * np.sum(found.values**2)
    steps = 0.01 / 2.0 ** np.arange(4)
    rest = []
    for e in steps:
        other = advected(case, places + e * smooth, phi + e * phi_dot)
        rest.append(abs(0.5 * np.sum(other.values**2) - J - e * slope))
    rates = np.log2(np.array(rest[:-1]) / rest[1:])
    assert rates.min() >= 1.9


def test_tangent_and_adjoint_agree(case):
    _, places, phi, rng = case
    found = advected(case, places, phi)
    p_dot, v_dot = rng.standard_normal(places.shape), rng.standard_normal(len(phi))
    dual = rng.standard_normal(found.values.shape)
    p_bar, v_bar = adjoint(found, dual)
    left = np.vdot(tangent(found, p_dot, v_dot), dual)
    right = np.vdot(p_dot, p_bar) + np.vdot(v_dot, v_bar)
    assert abs(left - right) < 1e-10 * abs(left)


def test_derivatives_do_not_depend_on_threads(case):
    _, places, phi, rng = case
    dual = rng.standard_normal(case[0].shape)
    before = thread_count()
    found = []
    try:
        for count in (1, 2):
            set_threads(count)
            moved = advected(case, places, phi)
            found.append([tangent(moved, np.cos(places)), *adjoint(moved, dual)])
    finally:
        set_threads(before)
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)


def test_the_kernel_has_no_jump_at_its_edge():
    """A sample that passes the radius changes nothing at that moment."""
    values = []
    for passing in (1.5 - 1e-7, 1.5 + 1e-7):
        places = np.array([[1.2, 3.0], [1.0 + passing, 3.0]])
        values.append(forward_advect(places, np.array([1.0, 2.0]), (6, 6)).values[1, 3])
    assert abs(values[0] - values[1]) < 1e-12
    assert values[1] == 1.0
