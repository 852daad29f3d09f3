"""Energies with a kink (seed 004, eq. 4.39): Newton's method ends where the balance sits on it."""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.newton import ROUNDINGS, Newton, _rounded_energy
from pliant.dynamics.newton_problem import NewtonFailure
from pliant.dynamics.rest import StaticProblem, find_rest
from pliant.fem.laws import LAWS
from pliant.fem.laws.expression import GENERIC, evaluate

KINK = 1.0 + np.pi / 8.0


@pl.energy
def kinked(F, p):
    J = pl.laws.det(F)
    shape = p.mu * (J ** (-2 / 3) * pl.laws.first_invariant(F) - 3)
    return shape + p.lam * (J - 1) ** 2 + np.sqrt(np.cos(4 * (J - 1)) ** 2) - 1


BODY = pl.TetBody(pl.shapes.box(center=(0, 0, 0), size=(0.8, 1, 0.8)), 0.4, order=1)


def pulled(lift, law, **options):
    held = [
        pl.Fixed(pl.shapes.half_space(normal=(0, 1, 0), offset=-0.49)),
        pl.Fixed(pl.shapes.half_space(normal=(0, -1, 0), offset=-0.49), lift),
    ]
    return ImplicitModel(pl.Scene(BODY, law=law, fixed=held, gravity=(0, 0, 0), **options))


def on_the_kink(u):
    """How many cells have J = 1 + pi/8 to 1e-5."""
    volume = [np.linalg.det(x[:, 1:] - x[:, :1]) for x in
              ((BODY.nodes + u)[BODY.cells], BODY.nodes[BODY.cells])]  # fmt: skip
    return int((np.abs(volume[0] / volume[1] - KINK) < 1e-5).sum())


def assert_lowest(potential, u, free, slack):
    """No random step of the free nodes, alone or together, leads down by more than `slack`."""
    rng = np.random.default_rng(2)
    here = potential(u)
    for size in (1e-2, 1e-3, 1e-4):
        for alone in (False, True):
            for _ in range(20):
                d = size * rng.standard_normal(u.shape) * free
                if alone:
                    d[np.arange(len(u)) != rng.choice(np.flatnonzero(free.all(axis=1)))] = 0.0
                for way in (d, -d):
                    assert potential(u + way) > here - slack


@pytest.mark.parametrize(
    ("modulus", "lift"), [
        pytest.param(10.0, 0.6, marks=pytest.mark.slow), (100.0, 0.5), (100.0, 0.6),
        pytest.param(100.0, 0.7, marks=pytest.mark.slow), (1000.0, 0.6),
    ],
)  # fmt: skip
def test_bodies_rest_on_a_kink(modulus, lift):
    system = pulled((0, lift, 0), kinked(mu=modulus, lam=modulus))
    problem = StaticProblem(system)
    u, records, halvings = find_rest(system)
    assert halvings == 0
    assert records[-1].kink_width == ROUNDINGS[-1]
    assert records[-1].residual <= 1e-8
    assert on_the_kink(u) >= 4
    assert system.elastic.operator.law is system.law  # rounded only while it is solved

    def energy(v):
        return system.elastic.operator.energy(to_device(v, wp.vec3d))

    assert_lowest(energy, u, system.boundary.free, 1e-6 * BODY.volume)
    with pytest.raises(NewtonFailure):  # why it is rounded: the law itself has no balance nearby
        Newton(problem, system.node_count, direct=True).converge(
            to_device(u, wp.vec3d), scale=records[-1].scale, tolerance=1e-8
        )


def test_steps_end_on_a_kink():
    """Implicit Euler: each step is the minimum of inertia plus energy."""
    dt, c = 0.02, 2.0
    up = pl.Motion(times=(0.0, 0.04, 1.0), values=((0, 0, 0), (0, 0.6, 0), (0, 0.6, 0)))
    system = pulled(
        up, kinked(mu=100.0, lam=100.0), material=pl.Material(density=1.0, mass_damping=c),
        integrator=pl.ImplicitEuler(dt=dt), tolerance=1e-8,
    )  # fmt: skip
    state = system.initial_state()
    met = 0
    for _ in range(5):
        before, (state, _) = state, system.step(state)
        if not system.newton_records[-1].kink_width:
            continue
        u, v, after = before.u.numpy(), before.v.numpy(), state.u.numpy()
        m = system.masses[:, None]
        met = max(met, on_the_kink(after))

        def potential(w, u=u, v=v, m=m):
            d = w - u
            kinetic = (m * ((d - dt * v) ** 2 + c * dt * d**2)).sum() / (2.0 * dt**2)
            return kinetic + system.elastic.operator.energy(to_device(w, wp.vec3d))

        assert_lowest(potential, after, system.boundary.free, 1e-6 * BODY.volume)
    assert met >= 4


def test_only_kinks_are_rounded():
    """Laws without a kink keep their way, though some are written with roots of squares."""
    for law in LAWS.values():
        assert _rounded_energy(law) is None
    assert _rounded_energy(pl.energy(lambda F, p: p.k * np.maximum(F[0, 0] - 1, 0) ** 2)) is None
    assert _rounded_energy(pl.energy(lambda F, p: p.k * np.maximum(F[0, 0], 1.1))) is not None
    smooth = _rounded_energy(kinked)
    assert smooth is not None
    names = {"p_mu": 1.0, "p_lam": 2.0, "p_kink_width": 1e-6}
    forms = [
        evaluate([f], {**GENERIC, **names})[0]
        for f in (smooth.principal, smooth.full, smooth.invariant, kinked.principal)
    ]
    assert forms == pytest.approx([forms[0]] * 4, rel=1e-9)


def test_what_cannot_rest_still_fails():
    """A body turned inside out has no energy; the sentence is the ordinary one."""
    system = pulled((0, -1.5, 0), kinked(mu=100.0, lam=100.0))
    with pytest.raises(pl.SolverFailure, match="found no rest at"):
        find_rest(system)
    assert system.elastic.operator.law is system.law
