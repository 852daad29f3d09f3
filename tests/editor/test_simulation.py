"""The session and the simulation's process: edits, runs, failures, and that nothing is left."""

import os
import time

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing.scene_files import build_scene, load_scene
from pliant.app.editor.desk import Desk
from pliant.app.editor.session import Session
from pliant.app.editor.simulation import Simulation
from pliant.core.errors import BadInput
from waiting import gone, soon

BLOCK = {
    "title": "block",
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.5, 0.5]},
    "body": {"kind": "grid", "spacing": 0.25},
    "material": {"youngs_modulus": 500.0, "mass_damping": 0.1, "stiffness_damping": 0.01},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
}


def block(**changes):
    return build_scene({**BLOCK, **changes})


# --- session


def test_edits_keep_the_body_until_it_changes(tmp_path):
    session = Session(block(), name="block", folder=tmp_path)
    told = []
    session.listeners.append(told.append)
    body = session.body
    session.set("material", youngs_modulus=900.0)
    session.change(gravity=[0.0, 0.0, 0.0])
    assert session.body is body
    assert session.scene.material.youngs_modulus == 900.0
    assert session.scene.material.mass_damping == 0.1
    session.change(body={"kind": "grid", "spacing": 0.125})
    assert session.body is not body
    assert len(session.body.cells) == 8 * 4 * 4
    assert told == ["scene", "scene", "body"]


def test_an_edit_that_cannot_be_built_changes_nothing(tmp_path):
    session = Session(block(), name="block", folder=tmp_path)
    before = session.description
    with pytest.raises(BadInput, match="youngs_modulus"):
        session.set("material", youngs_modulus=-1.0)
    with pytest.raises(BadInput):
        session.change(body={"kind": "grid", "spacing": 0.0})
    assert session.description is before


def test_saved_scene_is_the_same_scene(tmp_path):
    session = Session(block(), name="block", folder=tmp_path)
    session.set("material", poisson_ratio=0.41)
    session.change(loads=[{"type": "pressure", "pressure": 3.0, "region": {
        "type": "sphere", "center": [1.0, 0.0, 0.0], "radius": 0.3}}])  # fmt: skip
    session.save(tmp_path / "a.toml")
    again = Session(load_scene(tmp_path / "a.toml"), name="a", folder=tmp_path)
    assert again.description == session.description


def test_tip_is_the_far_end(tmp_path):
    session = Session(block(), name="block", folder=tmp_path)
    rest = session.body.surface.positions(session.body.nodes)
    assert rest[session.tip()][0] == pytest.approx(1.0)


# --- simulation


@pytest.fixture
def runner(tmp_path):
    said = []
    desk = Desk(said.append)
    desk.start()
    made = []

    def make(scene):
        session = Session(scene, name="block", folder=tmp_path)
        simulation = Simulation(session, desk, device="cpu", threads=1)
        simulation.failures = []
        simulation.on_failure = simulation.failures.append
        made.append(simulation)
        return session, simulation

    make.desk, make.said = desk, said
    yield make
    for simulation in made:
        desk.post(simulation.stop)
    desk.settle()
    desk.stop()
    assert all(s.pid is None for s in made)


def test_run_equals_simulate_pauses_and_goes_on_in_another_process(runner):
    scene = block()
    session, simulation = runner(scene)
    desk = runner.desk
    desk.post(lambda: simulation.set_tolerance(None))
    desk.post(simulation.warm_up)
    for _ in range(4):
        desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 4), (runner.said, simulation.failures)
    run = pl.simulate(scene, 8)
    for k in range(4):
        np.testing.assert_allclose(
            session.history[k].u, run.displacements[k + 1], rtol=1e-5, atol=1e-7
        )
        assert session.history[k].t == pytest.approx(0.02 * (k + 1))
    first = simulation.pid
    desk.post(simulation.pause)
    desk.post(simulation.stop)
    desk.settle()
    assert gone(first)
    for _ in range(4):
        desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 8)
    assert simulation.pid not in (None, first)
    np.testing.assert_allclose(session.history[7].u, run.displacements[8], rtol=1e-4, atol=1e-7)
    numbers = session.history[7].numbers
    assert {"assembly_ms", "solve_ms", "step_ms", "kinetic", "elastic", "gravity"} <= set(numbers)


def test_a_material_law_is_simulated_too(runner):
    """A live run of a scene with a law is that of `simulate`, and can be pulled."""
    heavy = block(law="neo-hookean", gravity=[0.0, -60.0, 0.0])
    session, simulation = runner(heavy)
    desk = runner.desk
    desk.post(lambda: simulation.set_tolerance(None))
    for _ in range(4):
        desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 4), simulation.failures
    run = pl.simulate(heavy, 4)
    other = pl.simulate(block(gravity=[0.0, -60.0, 0.0]), 4)
    found = session.history[3].u
    np.testing.assert_allclose(found, run.displacements[4], atol=1e-5 * np.abs(found).max())
    assert np.abs(found - other.displacements[4]).max() > 1e-3 * np.abs(found).max()
    before = float(session.history[3].u[:, 2].max())
    desk.post(lambda: simulation.pull(session.tip(), np.array([1.0, 0.0, 2.0]), 1.0))
    for _ in range(3):
        desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 7)
    assert session.history[6].u[:, 2].max() > before + 0.01


@pytest.mark.parametrize("model", ["position-based", "shape-matching", "mass-spring"])
def test_particles_are_simulated_and_pulled_too(runner, model):
    light = block(model=model, gravity=[0.0, -5.0, 0.0])
    session, simulation = runner(light)
    desk = runner.desk
    for _ in range(4):
        desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 4), simulation.failures
    found = session.history[3].u
    run = pl.simulate(light, 4)
    np.testing.assert_allclose(found, run.displacements[4], atol=1e-5 * np.abs(found).max())
    before = float(session.history[3].u[:, 2].max())
    desk.post(lambda: simulation.pull(session.tip(), np.array([1.0, 0.0, 2.0]), 1.0))
    for _ in range(3):
        desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 7)
    assert session.history[6].u[:, 2].max() > before + 0.005


def test_play_pause_edit_while_running_pull_and_reset(runner):
    session, simulation = runner(block(gravity=[0.0, 0.0, 0.0]))
    desk = runner.desk
    desk.post(simulation.play)
    assert soon(lambda: len(session.history) > 3)
    assert np.abs(session.history[-1].u).max() < 1e-9  # nothing acts
    tip = session.tip()
    points = session.body.surface.points

    def height():
        return float(points.at(session.history[-1].u)[tip, 1])

    desk.post(lambda: simulation.pull(tip, np.array([1.0, 1.0, 0.0]), 1.0))
    assert soon(lambda: height() > 0.05)
    desk.post(simulation.release)
    desk.post(lambda: session.change(gravity=[0.0, -50.0, 0.0]))  # the run goes on, with weight
    assert soon(lambda: height() < -0.05)
    assert simulation.running
    desk.post(simulation.pause)
    assert soon(lambda: not simulation.running)
    count = len(session.history)
    time.sleep(0.1)
    assert len(session.history) == count
    desk.post(simulation.reset)
    assert soon(lambda: len(session.history) == 0)
    desk.post(simulation.step)
    assert soon(lambda: len(session.history) == 1)
    assert session.history[0].t == pytest.approx(0.02)


def test_diverging_run_stops_with_a_sentence_and_can_be_mended(runner):
    wild = block(integrator={"type": "CentralDifferences", "dt": 0.1})
    session, simulation = runner(wild)
    runner.desk.post(simulation.play)
    assert soon(lambda: simulation.failures)
    assert soon(lambda: not simulation.running)
    assert "smaller time step" in simulation.failures[0]
    assert all(np.isfinite(session.history[i].u).all() for i in range(len(session.history)))
    assert simulation.pid is not None  # the process lives on
    tame = {"type": "Newmark1", "dt": 0.02, "theta": 0.6}
    runner.desk.post(lambda: session.change(integrator=tame))
    runner.desk.post(simulation.reset)
    runner.desk.post(simulation.play)
    assert soon(lambda: len(session.history) > 5)
    assert len(simulation.failures) == 1


def test_region_that_touches_nothing_is_a_sentence(runner):
    far = {"region": {"type": "sphere", "center": [9.0, 9.0, 9.0], "radius": 0.1}}
    session, simulation = runner(block())
    runner.desk.post(lambda: session.change(fixed=[far]))
    runner.desk.post(simulation.play)
    assert soon(lambda: simulation.failures)
    assert "touches no part" in simulation.failures[0]


def test_killed_process_is_noticed_and_replaced(runner):
    session, simulation = runner(block())
    runner.desk.post(simulation.play)
    assert soon(lambda: len(session.history) > 2)
    os.kill(simulation.pid, 9)
    assert soon(lambda: simulation.failures)
    assert "Play again" in simulation.failures[0]
    count = len(session.history)
    runner.desk.post(simulation.play)
    assert soon(lambda: len(session.history) > count + 2)


def test_a_cold_kernel_cache_is_told_in_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "kernels"))
    session = Session(block(), name="block", folder=tmp_path)
    notices = []
    desk = Desk(notices.append)
    desk.start()
    simulation = Simulation(session, desk, device="cpu", threads=1)
    simulation.on_notice = notices.append
    try:
        desk.post(simulation.warm_up)
        assert soon(lambda: notices, 60.0)
        assert notices == ["compiling kernels, once, about 25 s"]
    finally:
        simulation.stop()
        desk.stop()
