"""A model of few numbers, a pendulum: all that is not its own works for it.

It simulates, is filmed, fitted for its length, drawn, saved and resumed; its derivatives are those
that complex steps make of it.
"""

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pendulum
import pliant as pl
from pendulum import ROD, G, Swing
from pliant.app.pictures.picture import Studio
from pliant.dynamics.model import Parameters, State
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_tangent

SOURCE = Path(pl.__file__).parent


@pytest.fixture(scope="module")
def swing():
    return pl.simulate(Swing(), 60)


def test_it_simulates(swing):
    """A small swing takes 2 pi sqrt(l / g); energy neither appears nor is lost."""
    small = pl.simulate(Swing(angle=0.02, dt=0.01), 168)
    x = small.at([[0.0, -0.9, 0.0]])[:, 0, 0]
    assert np.argmax(x[100:]) + 100 == pytest.approx(2 * np.pi * np.sqrt(0.7 / G) / 0.01, abs=1)
    assert np.abs(swing.energies.total - swing.energies.total[0]).max() < 0.2
    assert swing.displacements.shape == (61, len(ROD.nodes), 3)


def test_it_is_filmed_and_fitted(swing):
    scene = Swing(length=0.75)
    cameras = pl.ring_of_cameras(scene, 4, width=40, height=40, room=2.5)
    seen = pl.observe(swing, cameras, noise=0.003, seed=1)
    fit = pl.reconstruct(scene, seen, {"length": 0.75})
    assert fit.converged, fit.reasons
    assert fit.values["length"] == pytest.approx(0.7, abs=5 * fit.sigma["length"])
    assert fit.sigma["length"] < 1e-3
    with pytest.raises(pl.BadInput, match="Did you mean 'length'"):
        pl.reconstruct(scene, seen, {"lenght": 0.75})


def test_it_is_drawn(swing):
    studio = Studio(swing.scene, [swing.nodes(0), swing.nodes(30)], width=60, height=60)
    picture = np.asarray(studio.picture(swing.nodes(30)))
    assert picture.std() > 1.0


def test_it_is_saved_and_resumed(swing, tmp_path):
    half = pl.simulate(Swing(), 25)
    again = pl.simulate(Swing(), 60, resume=half)
    assert np.array_equal(again.displacements, swing.displacements)
    sim = pl.Simulation(Swing())
    for _ in range(25):
        sim.step()
    sim.snapshot().save(tmp_path / "here.npz")
    other = pl.Simulation(Swing())
    other.restore(pl.Snapshot.load(tmp_path / "here.npz"))
    assert np.array_equal(other.positions(), swing.nodes(25))
    with pytest.raises(pl.BadInput, match="cannot be pushed"):
        sim.step(forces=np.zeros(ROD.nodes.shape))


# --- which model it is

LOOPS = ("march", "simulate", "simulation", "small_model", "worlds")
"""Files of dynamics that a model of one's own runs through."""

ITS_OWN = ("dynamics/", "inverse/complex_copy/", "app/describing/", "reduced/")
"""Where the elastic body's files lie: its forces and steps, its independent copy, how files
describe it, and the models that are made of one. What is in dynamics for every model
(`for_every_model`) is not among them."""

ASKS = re.compile(
    r"ImplicitModel|EnergyTerm|FrozenTerm|elastic\.linear|\.energetic\b|constitution\.tag"
    r"|isinstance\([^)]*\b(\w+Model|Scene|SmallWorld)\b"
)


def imported(path: Path) -> set[str]:
    """Modules of pliant that a file needs to be imported, "dynamics.model" for example."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = {n.module or "" for n in body if isinstance(n, ast.ImportFrom)}
    return {name.removeprefix("pliant.") for name in names if name.startswith("pliant.")}


def for_every_model() -> set[str]:
    """The loops and all that they stand on, as module names."""
    found, ahead = set(), {f"dynamics.{name}" for name in LOOPS}
    while ahead - found:
        found |= ahead
        ahead = {m for name in found for m in imported(SOURCE / f"{name.replace('.', '/')}.py")}
    return found


def test_loops_stand_on_no_finite_elements():
    layers = {name.partition(".")[0] for name in for_every_model()}
    assert layers <= {"core", "complexstep", "geometry", "dynamics"}


def test_nobody_asks_which_model_it_is():
    """Only a model's own files name its class or look at what it is made of."""
    shared = {f"{name.replace('.', '/')}.py" for name in for_every_model()}
    asking = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if ASKS.search(path.read_text(encoding="utf-8"))
    }
    assert {"dynamics/statics.py", "app/describing/elastic_scenes.py"} <= asking  # it finds them
    assert not {p for p in asking if p in shared or not p.startswith(ITS_OWN)}


# --- derivatives


def test_the_pendulum_is_short():
    text = Path(pendulum.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40  # imports, blank lines and docstrings included


def test_derivatives_are_the_analytic_ones():
    """Of start, step and points, by the state and by the unknowns, forwards and backwards."""
    scene = Swing()
    model, h, L = scene.make_model(), scene.dt, scene.length
    a, w, da, dw, dL = 0.8, -1.3, 0.3, -0.7, 0.11
    before = State({"angle": np.array(a), "speed": np.array(w)}, 0.1)
    change = State({"angle": np.array(da), "speed": np.array(dw)})
    after, _ = model.step(before)
    (found,) = model.tangents(before, after, [change], [Parameters(length=dL)])
    new = dw - h * G / L * (np.cos(a) * da - np.sin(a) * dL / L)
    assert found.arrays["speed"] == pytest.approx(new, rel=1e-14)
    assert found.arrays["angle"] == pytest.approx(da + h * new, rel=1e-14)
    ab, wb = 0.4, 1.7
    bar, dual = State({"angle": np.array(ab), "speed": np.array(wb)}), Parameters()
    back = model.adjoint(before, after, bar, dual)
    both = wb + h * ab
    assert back.arrays["speed"] == pytest.approx(both, rel=1e-14)
    assert back.arrays["angle"] == pytest.approx(ab - h * G / L * np.cos(a) * both, rel=1e-14)
    assert dual["length"] == pytest.approx(both * h * G / L**2 * np.sin(a), rel=1e-14)
    (begun,) = model.initial_tangents(model.initial_state(), [Parameters(angle=0.5)])
    assert begun.arrays["angle"] == pytest.approx(0.5, rel=1e-14)
    # points: x' = (-y, x, 0) by the angle, velocity w x'
    u, v = model.apply(before)
    x = (ROD.nodes + u) * [1, 1, 0]
    turned = np.stack([-x[:, 1], x[:, 0], 0 * x[:, 2]], axis=1)
    assert np.allclose(v, w * turned, atol=1e-15)
    du, dv = model.jvp(before, change)
    assert np.allclose(du, da * turned, atol=1e-14)
    assert np.allclose(dv, dw * turned - w * da * x, atol=1e-14)


def motion_of(model, states, weights):
    """sum_k w_k . (u, v)_k"""
    seen = zip(weights, map(model.apply, states), strict=True)
    return sum(float(np.sum(w * np.stack(pair))) for w, pair in seen)


def derivative_of(model, states, weights, direction):
    """The same along a direction of the unknowns: by the tangent, and by the adjoint."""
    parts = []

    def on_frame(k, tangent):
        parts.append(float(np.sum(weights[k] * np.stack(model.jvp(states[k], tangent)))))

    run_tangent(model, states, direction, on_frame)
    dual = run_adjoint(
        model, states, lambda k, state: model.vjp(state, (weights[k][0], weights[k][1]))
    )
    return sum(parts), dual.dot(direction)


@pytest.mark.parametrize("name", ["length", "angle"])
def test_adjoint_is_tangent_and_both_are_the_slope(name):
    """Dot test to 1e-10, and what is left of J falls with the square of the change."""
    scene, steps = Swing(), 40
    weights = np.random.default_rng(3).standard_normal((steps + 1, 2, len(ROD.nodes), 3))
    model = scene.make_model()
    states = run(model, steps)
    J = motion_of(model, states, weights)
    tangent, adjoint = derivative_of(model, states, weights, Parameters({name: 1.0}))
    assert adjoint == pytest.approx(tangent, rel=1e-10)
    left, changes = [], 10.0 ** -np.arange(2, 5)
    for h in changes:
        other = replace(scene, **{name: getattr(scene, name) + h}).make_model()
        left.append(abs(motion_of(other, run(other, steps), weights) - J - h * tangent))
    slopes = np.diff(np.log(left)) / np.diff(np.log(changes))
    assert slopes == pytest.approx(2.0, abs=0.1)


@dataclass(frozen=True)
class Bobs(pl.SmallWorld):
    """Two masses on springs whose pull, size in the picture and speeds are unknown vectors."""

    body: Any = ROD
    dt: float = 0.05
    stiffness: tuple[float, ...] = (3.0, 5.0)
    size: float = 1.2
    speeds: tuple[float, ...] = (0.5, -0.2)
    unknowns = {
        "stiffness": ("N/m", "positive"), "size": ("", "positive"), "speeds": ("m/s", "plain")
    }  # fmt: skip

    def start(self):
        return {"at": np.zeros(2), "speed": np.array(self.speeds)}

    def advance(self, at, speed):
        speed -= self.dt * np.array(self.stiffness) * np.sin(at)
        return {"at": at + self.dt * speed, "speed": speed}

    def points(self, at, speed):
        rest = self.body.nodes
        along = np.array([[0, 0, 0.3], [1, 0.1, 0]])
        u = np.outer(np.ones(len(rest)), self.size * at @ along) + (self.size - 1.0) * rest
        return u, np.outer(np.ones(len(rest)), self.size * speed @ along)


def test_vectors_and_what_is_seen_may_be_unknown():
    """`size` changes nothing but the points; arrays that a step writes to are its own."""
    scene, steps = Bobs(), 12
    weights = np.random.default_rng(5).standard_normal((steps + 1, 2, len(ROD.nodes), 3))
    model = scene.make_model()
    states = run(model, steps)
    assert np.array_equal(states[0].arrays["speed"], [0.5, -0.2])
    h = 1e-5
    for name, numbers in (("stiffness", 2), ("size", 1), ("speeds", 2)):
        for unit in np.eye(numbers):
            ends = []
            for side in (h, -h):
                block = scene.block(name)
                moved = block.put(scene, np.atleast_1d(block.get(scene)) + side * unit)
                other = moved.make_model()
                ends.append(motion_of(other, run(other, steps), weights))
            tangent, adjoint = derivative_of(model, states, weights, Parameters({name: unit}))
            assert adjoint == pytest.approx(tangent, rel=1e-10)
            assert tangent == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_a_model_that_loses_its_derivative_is_not_fitted(swing):
    """NumPy does not notice that `abs` is real; differences of the residuals do."""

    @dataclass(frozen=True)
    class Absolute(Swing):
        def advance(self, angle, speed):
            speed = speed - self.dt * G / np.abs(self.length) * np.sin(angle)
            return {"angle": angle + self.dt * speed, "speed": speed}

    cameras = pl.ring_of_cameras(swing.scene, 2, width=30, height=30, room=2.5)
    seen = pl.observe(swing, cameras, noise=0.003, seed=1)
    with pytest.raises(pl.PliantError, match="tangents and the difference of two runs differ"):
        pl.reconstruct(Absolute(), seen, {"length": 0.75})


def test_a_model_that_cannot_be_derived_says_so():
    @dataclass(frozen=True)
    class Real(Swing):
        def advance(self, angle, speed):
            return {"angle": angle + self.dt * float(speed), "speed": speed}

    @dataclass(frozen=True)
    class Short(Swing):
        def advance(self, angle, speed):
            return {"angle": angle}

    model = Real().make_model()
    before = model.initial_state()
    after, _ = model.step(before)
    with pytest.raises(pl.BadInput, match=r"Real\.advance does not take the complex numbers"):
        model.tangents(before, after, [before], [Parameters()])
    with pytest.raises(pl.BadInput, match=r"Short\.advance must return a state like that of start"):
        pl.simulate(Short(), 1)
    with pytest.raises(pl.BadInput, match="dt: it must be greater than 0, not -1"):
        Swing(dt=-1.0)
