"""Derivatives of viscoelastic bodies: Taylor rates of the branches' numbers, adjoint = tangent."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.errors import BadInput
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.model import State
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_with_tangents
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

BRANCHES = (pl.Branch(modulus=900.0, time=0.05), pl.Branch(modulus=400.0, time=0.01))
STARTS = {
    "branch_moduli": (900.0, 400.0), "branch_times": (0.05, 0.01), "poisson_ratio": 0.3,
    "youngs_modulus": 2e3, "density": 1.0, "stiffness_damping": 0.003,
    "initial_spin": (0.0, 3.0, 1.0),
}  # fmt: skip
SCHEMES = {
    "theta": pl.Newmark1(dt=0.02, theta=0.6), "Newmark2": pl.Newmark2(dt=0.02),
    "HHT": pl.HHT(dt=0.02), "generalised-alpha": pl.GeneralisedAlpha(dt=0.02),
    "implicit Euler": pl.ImplicitEuler(dt=0.02), "explicit": pl.CentralDifferences(dt=0.001),
}  # fmt: skip
SHAPE = pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2))
TETS = pl.TetBody(SHAPE, edge_length=0.2, order=1)
CUT = pl.GridBody(pl.shapes.sphere(radius=0.3, center=(0.33, 0.1, 0.11)), 0.17)
STEPS = 3
PLUCKED = pl.Start("state", modes=1, amplitudes=(0.02,), velocities=(0.3,))


def scene(scheme, body=TETS, **options) -> pl.Scene:
    """A body that swings, stretches and turns."""
    material = pl.Material(2e3, 0.3, stiffness_damping=0.003, branches=BRANCHES)
    moving = {"initial_spin": (0.0, 3.0, 1.0), "initial_velocity": (0.0, 0.5, 0.0)}
    return pl.Scene(
        body, material, gravity=(0.0, -9.81, 1.0), integrator=scheme, tolerance=1e-12,
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.1))], **(moving | options),
    )  # fmt: skip


class Chain:
    """A number of the last state of a run, and its derivatives by the unknowns."""

    def __init__(self, own: pl.Scene, starts: dict):
        self.scene = own
        members = [make_unknown(name, value, own) for name, value in starts.items()]
        self.unknowns = UnknownSet(tuple(members))
        self.system = ImplicitModel(self.unknowns.apply(own, self.unknowns.start()))
        shape = (self.system.node_count, 3)
        self.weight = np.random.default_rng(2).standard_normal(shape)

    def cost(self, q) -> float:
        self.system.update(self.unknowns.apply(self.scene, q))
        return float(np.sum(self.weight * run(self.system, STEPS)[-1].u.numpy()))

    def tangent(self, q) -> np.ndarray:
        self.system.update(self.unknowns.apply(self.scene, q))
        found = []

        def on_frame(step, state, tangents):
            found.append([np.sum(self.weight * t.u.numpy()) for t in tangents])

        directions = self.unknowns.directions(self.system, q)
        run_with_tangents(self.system, STEPS, directions, on_frame)
        return np.array(found[-1])

    def adjoint(self, q) -> np.ndarray:
        self.system.update(self.unknowns.apply(self.scene, q))
        states = run(self.system, STEPS)

        def seed(k, state):
            if k < STEPS:
                return None
            zero = zeros(self.system.node_count, wp.vec3d)
            return State.of(to_device(self.weight, wp.vec3d), zero, wp.clone(zero))

        return self.unknowns.pull(self.system, q, run_adjoint(self.system, states, seed))

    def rate(self, direction: np.ndarray, size: float = 0.02) -> float:
        """Observed order of the remainder of the linearisation."""
        q = self.unknowns.start()
        value, slope = self.cost(q), float(self.tangent(q) @ direction)
        sizes = size / 2.0 ** np.arange(3)
        left = [abs(self.cost(q + e * direction) - value - e * slope) for e in sizes]
        return float(np.polyfit(np.log(sizes), np.log(left), 1)[0])


CASES = {
    **{name: (scheme, TETS, {}) for name, scheme in SCHEMES.items()},
    "linear": (SCHEMES["generalised-alpha"], TETS, {"model": "linear"}),
    "law": (SCHEMES["generalised-alpha"], TETS, {"law": "neo-hookean"}),
    "cut grid": (SCHEMES["HHT"], CUT, {}),
    "balanced start": (SCHEMES["HHT"], TETS, {"start": PLUCKED}),
}


@pytest.mark.parametrize("case", CASES)
def test_adjoint_equals_tangent(case):
    scheme, body, options = CASES[case]
    starts = dict(STARTS)
    if "start" in options:
        del starts["initial_spin"]  # nothing starts with it
        options = {**options, "initial_spin": (0.0, 0.0, 0.0), "initial_velocity": (0.0, 0.0, 0.0)}
        starts["start_amplitudes"] = PLUCKED.amplitudes
    chain = Chain(scene(scheme, body, **options), starts)
    q = chain.unknowns.start()
    found = chain.tangent(q)
    assert np.all(found != 0.0)
    np.testing.assert_allclose(chain.adjoint(q), found, rtol=1e-8, atol=1e-8 * np.abs(found).max())


OWN = ("branch_moduli", "branch_times")


@pytest.mark.parametrize("case", ["theta", "generalised-alpha", "linear", "law", "cut grid"])
def test_taylor_rates(case):
    scheme, body, options = CASES[case]
    chain = Chain(scene(scheme, body, **options), {name: STARTS[name] for name in OWN})
    assert chain.rate(np.array([1.0, -0.7, 0.6, 0.9])) > 1.9


@pytest.mark.parametrize("name", [*OWN, "poisson_ratio"])
def test_taylor_rates_alone(name):
    chain = Chain(scene(SCHEMES["HHT"]), {name: STARTS[name]})
    assert chain.rate(np.array([1.0, -0.7])[: len(chain.unknowns.start())]) > 1.9


def test_a_law_of_its_own_numbers_moves_the_branches_ratio():
    law = pl.laws.NeoHookean(mu=800.0, lam=1200.0)
    starts = {"law.lam": 1200.0, "law.mu": 800.0, "branch_times": STARTS["branch_times"]}
    chain = Chain(scene(SCHEMES["Newmark2"], law=law), starts)
    q = chain.unknowns.start()
    np.testing.assert_allclose(chain.adjoint(q), chain.tangent(q), rtol=1e-8)
    assert chain.rate(np.array([1.0, 0.5, 0.3, -0.2])) > 1.9


@pytest.mark.slow
def test_steps_taken_in_parts(monkeypatch):
    """The strains of a step that was halved went through its middle."""
    monkeypatch.setattr("pliant.dynamics.newton.MAX_ITERATIONS", 9)  # it fails sooner
    jump = pl.Motion(times=(0.0, 0.1), values=((0, 0, 0), (-0.3, 0, 0)))
    held = [
        pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.01)),
        pl.Fixed(pl.shapes.half_space(normal=(-1, 0, 0), offset=-0.59), jump),
    ]
    own = replace(
        scene(pl.ImplicitEuler(dt=0.1), law="neo-hookean"), fixed=held,
        initial_spin=(0.0, 0.0, 0.0), initial_velocity=(0.0, 0.0, 0.0),
    )  # fmt: skip
    assert pl.simulate(own, STEPS).parts.max() > 1
    chain = Chain(own, {name: STARTS[name] for name in OWN})
    q = chain.unknowns.start()
    np.testing.assert_allclose(chain.adjoint(q), chain.tangent(q), rtol=1e-8)
    assert chain.rate(np.array([1.0, -0.7, 0.6, 0.9])) > 1.9


def test_with_contact_and_friction():
    low = float(TETS.nodes[:, 1].min())
    own = replace(
        scene(SCHEMES["theta"]), fixed=(), obstacles=[pl.Plane(offset=low)],
        contact=pl.ContactLaw(friction=0.3), initial_velocity=(0.5, -1.0, 0.0),
    )  # fmt: skip
    chain = Chain(own, {name: STARTS[name] for name in (*OWN, "youngs_modulus")})
    q = chain.unknowns.start()
    np.testing.assert_allclose(chain.adjoint(q), chain.tangent(q), rtol=1e-8)


def test_branches_that_are_missing_or_too_many_are_told():
    plain = pl.Scene(TETS)
    with pytest.raises(BadInput, match="no branches"):
        make_unknown("branch_moduli", (1.0,), plain)
    with pytest.raises(BadInput, match="as many numbers as the material has branches, 2, not 1"):
        make_unknown("branch_times", (1.0,), scene(SCHEMES["HHT"]))


@pytest.mark.slow
def test_a_fit_finds_the_branch_and_the_long_term_modulus():
    """A push and its decay, seen at the nodes; the start is off by a third and more."""
    one = pl.Material(2e3, 0.3, branches=[pl.Branch(modulus=900.0, time=0.05)])
    own = replace(scene(pl.GeneralisedAlpha(dt=0.03), model="linear"), material=one)
    seen = pl.NodeMotions.of(pl.simulate(own, 6))
    starts = {"youngs_modulus": 2600.0, "branch_moduli": 500.0, "branch_times": 0.08}
    fit = pl.reconstruct(own, seen, unknowns=starts)
    assert fit.values["youngs_modulus"] == pytest.approx(2e3, rel=1e-4)
    assert fit.values["branch_moduli"] == pytest.approx(900.0, rel=1e-4)
    assert fit.values["branch_times"] == pytest.approx(0.05, rel=1e-4)
