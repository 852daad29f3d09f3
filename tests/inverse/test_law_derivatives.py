"""Derivatives of simulations with a law: Taylor rates, and adjoint = tangent transposed."""

import dataclasses

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.model import State
from pliant.fem.laws import LAWS
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_with_tangents
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

SCHEMES = {
    "ImplicitEuler": pl.ImplicitEuler(dt=0.02),
    "Newmark1": pl.Newmark1(dt=0.02, theta=0.6),
    "Newmark2": pl.Newmark2(dt=0.02),
    "Newmark3": pl.Newmark3(dt=0.004),
    "LinearAcceleration": pl.LinearAcceleration(dt=0.004),
    "HHT": pl.HHT(dt=0.02),
    "CentralDifferences": pl.CentralDifferences(dt=0.001),
}
STEPS = 3


def bar(kind):
    shape = pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2))
    if kind == "tets":
        return pl.TetBody(shape, edge_length=0.2)
    return pl.GridBody(pl.shapes.sphere(radius=0.3, center=(0.33, 0.1, 0.11)), 0.17)


def scene_of(law, scheme, kind="tets", **changes):
    options = {
        "gravity": (0, -9.81, 1.0),
        "fixed": [pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.1))],
        "initial_spin": (0.0, 3.0, 1.0), "initial_velocity": (0.0, 0.5, 0.0),
        "tolerance": 1e-12,
        **changes,
    }  # fmt: skip
    material = pl.Material(2e3, 0.3, mass_damping=0.1, stiffness_damping=0.003)
    return pl.Scene(bar(kind), material, law=law, integrator=scheme, **options)


def problem(scene, names):
    """(cost, tangent gradient, adjoint gradient) as functions of q."""
    starts = {n: _start(scene, n) for n in names}
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in starts.items()))
    system = ImplicitModel(unknowns.apply(scene, unknowns.start()))
    weight = np.random.default_rng(2).standard_normal((system.node_count, 3))

    def cost(q):
        system.update(unknowns.apply(scene, q))
        return float(np.sum(weight * run(system, STEPS)[-1].u.numpy()))

    def tangent(q):
        system.update(unknowns.apply(scene, q))
        out = {}

        def on_frame(step, state, tangents):
            out["g"] = np.array([np.sum(weight * t.u.numpy()) for t in tangents])

        run_with_tangents(system, STEPS, unknowns.directions(system, q), on_frame)
        return out["g"]

    def adjoint(q):
        system.update(unknowns.apply(scene, q))
        states = run(system, STEPS)

        def seed(k, state):
            if k < STEPS:
                return None
            zero = zeros(system.node_count, wp.vec3d)
            return State.of(to_device(weight, wp.vec3d), zero, wp.clone(zero))

        return unknowns.pull(system, q, run_adjoint(system, states, seed))

    return unknowns.start(), cost, tangent, adjoint


def _start(scene, name):
    if name.startswith("law."):
        return scene.law.values[name.removeprefix("law.")]
    if name == "initial_spin":
        return scene.initial_spin
    if name == "gravity":
        return scene.gravity
    return getattr(scene.material, name)


def taylor_rate(cost, g, q, d):
    """Smallest observed order of the remainder after the linear term."""
    base = cost(q)
    eps = 0.001 / 2.0 ** np.arange(4)
    rest = np.array([abs(cost(q + e * d) - base - e * (g @ d)) for e in eps])
    return np.log2(rest[:-1] / rest[1:]).min()


def check(scene, names):
    q, cost, tangent, adjoint = problem(scene, names)
    g = tangent(q)
    assert adjoint(q) == pytest.approx(g, rel=1e-7, abs=1e-9 * np.abs(g).max())
    d = np.random.default_rng(4).standard_normal(len(q))
    assert taylor_rate(cost, g, q, d) > 1.9


@pytest.mark.parametrize("name", list(LAWS))
def test_every_law(name):
    law = LAWS[name].from_moduli(2e3, 0.3)
    check(scene_of(law, SCHEMES["Newmark1"]), [f"law.{n}" for n in law.values])


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("kind", ["tets", "grid"])
def test_every_integrator(scheme, kind):
    law = LAWS["mooney-rivlin"].from_moduli(2e3, 0.3)
    names = ["law.c10", "law.kappa", "density", "mass_damping", "stiffness_damping", "initial_spin"]
    check(scene_of(law, SCHEMES[scheme], kind), names)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("name", list(LAWS))
def test_every_law_and_integrator(name, scheme):
    law = LAWS[name].from_moduli(2e3, 0.3)
    check(scene_of(law, SCHEMES[scheme]), [f"law.{n}" for n in law.values])


def test_law_by_name_follows_the_material():
    scene = scene_of("mooney-rivlin", SCHEMES["HHT"])
    check(scene, ["youngs_modulus", "poisson_ratio"])


def test_with_contact():
    scene = scene_of(
        LAWS["neo-hookean"].from_moduli(2e3, 0.3), SCHEMES["Newmark1"], fixed=(),
        obstacles=[pl.Plane(offset=0.0)], initial_velocity=(0, -1, 0),
    )  # fmt: skip
    check(scene, ["law.lam", "law.mu", "density"])


def test_steps_taken_in_parts(monkeypatch):
    """A step that Newton had to halve: its sub-steps are differentiated, exactly."""
    monkeypatch.setattr("pliant.dynamics.newton.MAX_ITERATIONS", 9)  # it fails sooner
    jump = pl.Motion(times=(0.0, 0.1), values=((0, 0, 0), (-0.3, 0, 0)))
    held = [
        pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.01)),
        pl.Fixed(pl.shapes.half_space(normal=(-1, 0, 0), offset=-0.59), jump),
    ]
    law = LAWS["neo-hookean"].from_moduli(2e3, 0.3)
    scene = scene_of(
        law, pl.ImplicitEuler(dt=0.1), fixed=held, initial_spin=(0, 0, 0),
        initial_velocity=(0, 0, 0), tolerance=1e-12,
    )  # fmt: skip
    assert pl.simulate(scene, STEPS).parts.max() > 1
    check(scene, ["law.mu", "density"])


def test_own_energy():
    @pl.energy
    def fibred(F, p):
        J = pl.laws.det(F)
        I4 = F[0, 0] ** 2 + F[1, 0] ** 2 + F[2, 0] ** 2
        matrix = p.mu / 2 * (pl.laws.first_invariant(F) - 3 - 2 * np.log(J))
        return matrix + p.k / 2 * np.log(J) ** 2 + p.fibre / 4 * (I4 - 1) ** 2

    law = fibred(mu=800.0, k=1200.0, fibre=500.0)
    check(scene_of(law, SCHEMES["Newmark1"]), ["law.mu", "law.k", "law.fibre"])


def test_unknown_parameters_are_refused():
    scene = scene_of(LAWS["neo-hookean"].from_moduli(2e3, 0.3), SCHEMES["Newmark1"])
    with pytest.raises(pl.BadInput, match="no parameter 'c10'"):
        make_unknown("law.c10", 1.0, scene)
    with pytest.raises(pl.BadInput, match="no law"):
        make_unknown("law.mu", 1.0, dataclasses.replace(scene, law=None))


@pytest.mark.parametrize("name", ["youngs_modulus", "poisson_ratio"])
def test_a_modulus_on_which_nothing_depends_is_refused(name):
    law = LAWS["neo-hookean"].from_moduli(2e3, 0.3)
    scene = scene_of(law, SCHEMES["HHT"])
    with pytest.raises(pl.BadInput, match="numbers of its own"):
        make_unknown(name, 0.3, scene)
    make_unknown(name, 0.3, dataclasses.replace(scene, law="neo-hookean"))  # follows the material


def test_adjoints_heed_their_tolerance():
    """A loose backward run takes fewer iterations and ends elsewhere, but near."""
    scene = scene_of("neo-hookean", SCHEMES["HHT"], "grid")
    model = ImplicitModel(scene)
    states, solve, spent = run(model, STEPS), model.solver.solve, []

    def counted(*arguments, **options):
        spent.append(solve(*arguments, **options))
        return spent[-1]

    def seed(k, state):
        return model.carrier.vjp(state, (state.u.numpy(), 0.0 * state.u.numpy())) if k else None

    model.solver.solve = counted
    found = []
    for tolerance in (1e-3, 1e-12):
        spent.clear()
        dual = run_adjoint(model, states, seed, tolerance=tolerance)
        found.append((sum(s.iterations for s in spent), dual["gravity"]))
    assert found[0][0] < 0.7 * found[1][0]
    assert 0.0 < np.abs(found[0][1] - found[1][1]).max() < 0.1 * np.abs(found[1][1]).max()
