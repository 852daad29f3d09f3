"""Tangents against differences of runs, adjoints against tangents, and a fit of a reduced body."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.march import march
from pliant.dynamics.model import State
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_with_tangents

WALL = [pl.Fixed(pl.shapes.box(center=(-0.2, 0, 0), size=(1e-3, 1, 1)))]
SOFT = pl.Material(youngs_modulus=2e5, poisson_ratio=0.3, density=1000.0, mass_damping=0.4,
                   stiffness_damping=0.004)  # fmt: skip
STEPS = 8


def _scenes():
    body = pl.TetBody(pl.shapes.box(size=(0.4, 0.1, 0.1)), edge_length=0.1, order=1)
    grid = pl.GridBody(pl.shapes.box(size=(0.4, 0.1, 0.1)), 0.04)
    held = {"fixed": WALL, "tolerance": 1e-12}
    reduced = {"model": "reduced", "numbers": {"domains": 2, "cubature": 0.05}}
    modal = {"model": "modal", "numbers": {"modes": 4, "cubature": 0.0}}
    floor = {"obstacles": [pl.Plane(offset=-0.055)], "contact": pl.ContactLaw(friction=0.4),
             "initial_velocity": (0.4, -0.1, 0.0), "tolerance": 1e-12}  # fmt: skip
    return {
        "domains": pl.Scene(body, SOFT, law="neo-hookean", **held, **reduced),
        "modal, corotated, HHT": pl.Scene(grid, SOFT, integrator=pl.HHT(0.01), **held, **modal),
        "floor": pl.Scene(body, SOFT, law="st-venant-kirchhoff", **floor, **reduced),
    }


SCENES = _scenes()
UNKNOWNS = {
    "domains": ["youngs_modulus", "poisson_ratio", "density", "mass_damping", "stiffness_damping",
                "gravity", "initial_velocity"],
    "modal, corotated, HHT": ["youngs_modulus", "poisson_ratio", "stiffness_damping", "gravity"],
    "floor": ["youngs_modulus", "poisson_ratio", "ground_offset", "ground_normal", "density",
              "initial_velocity", "mass_damping"],
}  # fmt: skip
CASES = [(scene, name) for scene, names in UNKNOWNS.items() for name in names]


def _goal(model, states):
    """A smooth number of a whole run, and its derivative by each state."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(len(states), 2, len(model.masses), 3))
    total, seeds = 0.0, []
    for k, state in enumerate(states):
        u, v = model.carrier.apply(state)
        total += float(np.sum(weights[k, 0] * u) + 0.01 * np.sum(weights[k, 1] * v))
        seeds.append(model.carrier.vjp(state, (weights[k, 0], 0.01 * weights[k, 1])))
    return total, seeds


@pytest.mark.parametrize(("which", "name"), CASES)
def test_tangents_are_the_slopes_of_runs(which, name):
    scene = SCENES[which]
    block = scene.block(name)
    value = np.atleast_1d(np.asarray(block.get(scene), float))
    change = np.zeros(len(value))
    change[-1 if name == "gravity" else 0] = 0.1 * max(
        abs(value[0]), 1.0 if "ground" in name else 0.1
    )
    if name == "ground_offset":
        change[:] = 1e-3
    model = scene.make_model()
    states = run(model, STEPS)
    total, seeds = _goal(model, states)
    p = block.push(model, change)
    found = []
    run_with_tangents(model, STEPS, [p], lambda k, s, t: found.append(t[0]))
    slope = sum(
        float(np.sum(seed.arrays[n] * t.arrays[n])) for seed, t in zip(seeds, found, strict=True)
        for n in seed.arrays
    )  # fmt: skip
    errors = []
    for e in (0.02, 0.01):
        model.update(block.put(scene, value + e * change))
        moved, _ = _goal(model, run(model, STEPS))
        errors.append(abs(moved - total - e * slope))
    model.update(scene)
    noise = 1e-9 * max(abs(total), abs(slope))
    assert errors[1] < noise or np.log2(errors[0] / errors[1]) >= 1.9
    dual = run_adjoint(model, states, lambda k, s: seeds[k])
    assert float(block.pull(model, dual, len(change)) @ change) == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize("which", SCENES)
def test_adjoint_of_a_step_is_the_transpose_of_its_tangent(which):
    scene = SCENES[which]
    model = scene.make_model()
    steps = list(march(model, model.initial_state(), until=4))
    rng = np.random.default_rng(0)
    step = steps[-1]

    def drawn():
        return State({n: rng.normal(size=model.size) for n in step.after.arrays})

    change, bar = drawn(), drawn()
    d = model.derivatives
    (out,) = d.tangents(step.before, step.after, [change], [{}])
    d.begin_adjoint()
    from pliant.dynamics.model import Parameters

    back = d.adjoint(step.before, step.after, bar, Parameters())
    there = sum(float(out.arrays[n] @ bar.arrays[n]) for n in bar.arrays)
    here = sum(float(back.arrays[n] @ change.arrays[n]) for n in bar.arrays)
    assert here == pytest.approx(there, rel=1e-10)


def test_a_fit_finds_its_own_numbers():
    scene = SCENES["domains"]
    seen = pl.observe(
        pl.simulate(scene, 12), cameras=pl.ring_of_cameras(scene, 2, width=48, height=36),
        noise=1e-4, seed=1,
    )  # fmt: skip
    fit = pl.reconstruct(scene, seen, unknowns={"youngs_modulus": 2.4e5, "poisson_ratio": 0.35})
    for name, truth in (("youngs_modulus", 2e5), ("poisson_ratio", 0.3)):
        assert abs(fit.values[name] - truth) < 4.0 * fit.sigma[name]


def test_what_cannot_be_unknown_is_said():
    scene = pl.Scene(
        SCENES["domains"].body, SOFT, model="reduced", numbers={"domains": 1, "cubature": 0.0},
        fixed=[pl.Fixed(WALL[0].region, stiffness=1e6)],
    )  # fmt: skip
    model = scene.make_model()
    with pytest.raises(pl.BadInput, match="cannot be unknown here"):
        model.derivatives.initial_tangents(
            model.initial_state(), [scene.block("wall_stiffness").push(model, np.ones(1))]
        )
