"""Run directories: complete, resumable to the last bit, and refusing what does not belong."""

import json
import signal
import subprocess
import sys
import time

import meshio
import numpy as np
import pytest
from command_line import block, in_process, pliant, write

from pliant.app.describing.scene_files import build_scene, load_scene
from pliant.app.folders.runs import Interrupted, RunDirectory, RunFailed, describe, run_scene
from pliant.dynamics.implicit import SMALL_BODY
from pliant.dynamics.march import FRESH
from waiting import PATIENCE

MOVED = block(
    fixed=[
        {
            "region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]},
            "times": [0.0, 0.07, 0.3],
            "displacements": [[0, 0, 0], [0, 0.1, 0], [0, 0, 0.3]],
        }
    ]
)
"""The block with a moving end, so that the time itself matters."""

BRANCHED = MOVED | {
    "material": {"youngs_modulus": 500.0, "branches": [{"modulus": 200.0, "time": 0.03}]}
}
"""Of a material that remembers."""


def begun(path, description) -> tuple:
    scene = build_scene(description)
    directory = RunDirectory(path)
    directory.begin(scene, describe(scene)[1])
    return scene, directory


def test_one_command_leaves_everything(tmp_path, capfd, monkeypatch):
    file = write(tmp_path / "block.toml", block())
    out = tmp_path / "out"
    code, text, err = in_process(capfd, monkeypatch, "simulate", file, "--out", out, "--json")
    assert code == 0
    assert err == ""
    result = json.loads(text)
    assert json.loads((out / "result.json").read_text()) == result
    assert (result["status"], result["steps"], result["nodes"]) == ("finished", 6, 45)
    assert result["time"] == pytest.approx(0.12)
    assert load_scene(out / "scene.toml").source["steps"] == 6
    for name in ("final.png", "motion.gif", "surface.ply", "trajectory.pvd"):
        assert (out / name).stat().st_size > 100
    assert len(list((out / "trajectory").iterdir())) == 14
    assert not [p for p in out.rglob(".*")]
    frame = meshio.read(out / "trajectory" / "frame_000006.vtu")
    assert frame.cells[0].type == "hexahedron"
    size = np.linalg.norm(frame.point_data["displacement"], axis=1)
    assert size.max() == pytest.approx(result["largest_displacement"], rel=1e-12)
    assert set(frame.point_data) == {"displacement", "velocity"}
    assert frame.cell_data["fill"][0].max() == pytest.approx(1.0)
    # the same command again has nothing to do; more steps go on; another scene is refused
    arguments = ("simulate", file, "--out", out, "--no-pictures")
    code, text, err = in_process(capfd, monkeypatch, *arguments)
    assert code == 0
    assert "has 6 steps already" in err
    arguments = (*arguments, "--steps", 8, "--json")
    code, text, err = in_process(capfd, monkeypatch, *arguments)
    assert json.loads(text)["steps"] == 8
    assert "continued from step 6" in err
    write(file, block(material={"youngs_modulus": 501.0}))
    code, text, err = in_process(capfd, monkeypatch, *arguments)
    assert code == 2
    assert "material.youngs_modulus is 500.0 there, 501.0 here" in err
    code, text, err = in_process(capfd, monkeypatch, *arguments, "--overwrite")
    assert code == 0
    assert json.loads(text)["steps"] == 8
    assert not (out / "final.png").exists()


@pytest.mark.parametrize("description", [MOVED, BRANCHED], ids=["elastic", "branched"])
@pytest.mark.parametrize("every", [1, 4])
def test_an_interrupted_run_ends_with_the_same_bits(tmp_path, every, description):
    scene, whole = begun(tmp_path / "whole", description)
    run_scene(scene, whole, steps=9, every=every)

    def stop_at(step):
        def progress(done):
            if done == step:
                signal.raise_signal(signal.SIGINT)

        return progress

    scene, parts = begun(tmp_path / "parts", description)
    for step in (2, 7):
        with pytest.raises(Interrupted):
            run_scene(scene, parts, steps=9, every=every, progress=stop_at(step))
        assert parts.last_state(scene.body.nodes.shape).step == step
    run_scene(build_scene(description), parts, steps=9, every=every)
    assert parts.saved_steps() == whole.saved_steps()
    for step in whole.saved_steps():
        a, b = whole.read_state(step), parts.read_state(step)
        assert a.t == b.t
        for x, y in ((a.u, b.u), (a.v, b.v), (a.a, b.a)):
            assert np.array_equal(x, y)
        assert set(a.arrays) == set(b.arrays)
        assert all(np.array_equal(x, b.arrays[name]) for name, x in a.arrays.items())
        assert ("history_0" in a.arrays) == (description is BRANCHED)
        assert np.array_equal(a.work[:, 0], b.work[:, 0])
    assert not (parts.path / "checkpoint.npz").exists()


@pytest.mark.parametrize("every", [1, 1000])
def test_a_body_whose_solver_remembers_ends_with_the_same_bits(tmp_path, every):
    """Large enough for a hierarchy and a past; saved seldom, it goes on from its anchor."""
    description = block(body={"kind": "grid", "spacing": 0.125})
    steps, stops = FRESH + 6, (3, FRESH + 3)
    scene, whole = begun(tmp_path / "whole", description)
    assert len(scene.body.nodes) >= SMALL_BODY
    run_scene(scene, whole, steps=steps, every=every)
    scene, parts = begun(tmp_path / "parts", description)
    for step in stops:

        def progress(done, step=step):
            if done == step:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(Interrupted):
            run_scene(build_scene(description), parts, steps=steps, every=every, progress=progress)
    assert (parts.path / "anchor.npz").exists() == (every == 1000)
    run_scene(build_scene(description), parts, steps=steps, every=every)
    a, b = whole.read_state(steps), parts.read_state(steps)
    for x, y in ((a.u, b.u), (a.v, b.v), (a.a, b.a)):
        assert np.array_equal(x, y)
    assert np.array_equal(whole.work()[:, 0], parts.work()[:, 0])


def test_a_signal_from_outside(tmp_path):
    """Ctrl-C in the middle: exit code 130, a sentence, and the same command goes on."""
    file = write(tmp_path / "block.toml", block(steps=100_000))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "pliant", "simulate", file, "--out", out, "--no-pictures"]
    process = subprocess.Popen(
        [*map(str, command), "--every", "100000"], stderr=subprocess.PIPE, text=True
    )
    for _ in range(1200):
        if (out / "checkpoint.npz").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130, err
    assert "run the same command again" in err
    assert "Traceback" not in err
    result = json.loads((out / "result.json").read_text())
    assert result["status"] == "interrupted"
    again = pliant(
        "simulate", file, "--out", out, "--no-pictures", "--every", 100_000,
        "--steps", result["steps"] + 1, "--json",
    )  # fmt: skip
    assert json.loads(again.stdout)["steps"] == result["steps"] + 1
    assert f"continued from step {result['steps']}" in again.stderr


EXPLODING = block(integrator={"type": "CentralDifferences", "dt": 0.5}, steps=400)


def test_a_diverging_run_saves_its_last_good_state(tmp_path, capfd, monkeypatch):
    file = write(tmp_path / "boom.toml", EXPLODING)
    out = tmp_path / "out"
    code, text, err = in_process(
        capfd, monkeypatch, "simulate", file, "--out", out, "--every", 1000, "--no-pictures",
        "--no-energy-check",
    )  # fmt: skip
    assert code == 3
    assert "last good state" in err
    assert str(out) in err
    assert err.count("\n") == 1
    result = json.loads((out / "result.json").read_text())
    assert result["status"] == "failed"
    assert 0 < result["steps"] < 400
    last = RunDirectory(out).last_state((45, 3))
    assert last.step == result["steps"]
    assert np.isfinite(last.u).all()


def test_failure_in_python_names_the_reason(tmp_path):
    scene, directory = begun(tmp_path / "run", EXPLODING)
    with pytest.raises(RunFailed, match="not finite|failed"):
        run_scene(scene, directory, steps=400, every=50, energy_check=False)


def test_damaged_states_are_refused(tmp_path, capfd, monkeypatch):
    file = write(tmp_path / "block.toml", block())
    out = tmp_path / "out"
    arguments = ("simulate", file, "--out", out, "--no-pictures")
    assert in_process(capfd, monkeypatch, *arguments, "--steps", 2)[0] == 0
    (out / "trajectory" / "state_000002.npz").write_bytes(b"PK half a file")
    code, _, err = in_process(capfd, monkeypatch, *arguments)
    assert code == 2
    assert "damaged" in err
    (out / "result.json").write_text("[")
    code, _, err = in_process(capfd, monkeypatch, *arguments)
    assert code == 2
    assert "result.json" in err


def test_a_changed_shape_file_is_another_scene(tmp_path, capfd, monkeypatch):
    import pliant as pl

    def ball(radius):
        pl.shapes.sample(pl.shapes.sphere(radius=radius), spacing=0.2).save(tmp_path / "ball.npz")

    ball(0.5)
    file = write(tmp_path / "ball.toml", {"shape": {"file": "ball.npz"}, "steps": 1})
    arguments = ("simulate", file, "--out", tmp_path / "out", "--no-pictures")
    assert in_process(capfd, monkeypatch, *arguments)[0] == 0
    ball(0.6)
    code, _, err = in_process(capfd, monkeypatch, *arguments)
    assert code == 2
    assert "shape files have changed" in err


def test_a_mesh_is_taken_up_again_as_it_was(tmp_path, capfd, monkeypatch):
    """fTetWild's meshes differ from run to run: the directory keeps the one it began with."""
    file = write(tmp_path / "tets.toml", block(body={"kind": "tets", "edge_length": 0.4}))
    out = tmp_path / "out"
    arguments = ("simulate", file, "--out", out, "--no-pictures", "--json")
    assert in_process(capfd, monkeypatch, *arguments, "--steps", 2)[0] == 0
    with np.load(out / "body.npz") as stored:
        shuffled = stored["nodes"], stored["cells"][::-1]
    np.savez(out / "body.npz", nodes=shuffled[0], cells=shuffled[1])
    code, text, _ = in_process(capfd, monkeypatch, *arguments, "--steps", 3)
    assert code == 0
    frame = meshio.read(out / "trajectory" / "frame_000003.vtu")
    assert frame.cells[0].type == "tetra10"
    assert np.array_equal(np.sort(frame.cells[0].data), np.sort(shuffled[1]))
