"""Scenes of several bodies as files, runs and exports."""

import copy
import json
import signal
import subprocess
import sys
import time

import meshio
import numpy as np
import pytest
from command_line import in_process, write

import pliant as pl
from pliant.app.describing.scene_files import build_scene, load_scene, save_scene
from pliant.app.folders.stored_bodies import store_bodies, stored_maker
from pliant.core.errors import BadInput

BOX = {"type": "box", "center": [0.0, 0.0, 0.0], "size": [1.0, 0.5, 1.0]}
LOW = {"type": "box", "center": [0.0, 0.0, 0.0], "size": [2.0, 0.01, 2.0]}
SCENE = {
    "title": "two",
    "steps": 6,
    "obstacles": [{"type": "plane"}],
    "contact": {"friction": 0.3},
    "parts": [
        {
            "name": "jelly",
            "position": [0.0, 0.25, 0.0],
            "shape": BOX,
            "body": {"kind": "grid", "spacing": 0.25},
            "material": {"youngs_modulus": 1e5, "density": 1000.0, "stiffness_damping": 0.01},
            "fixed": [{"region": LOW, "axes": "xz"}],
            "loads": [{"type": "body", "force": [0.0, -1.0, 0.0]}],
        },
        {
            "name": "ball",
            "position": [0.1, 0.92, 0.0],
            "velocity": [0.3, -1.0, 0.0],
            "spin": [0.0, 0.0, 2.0],
            "law": "neo-hookean",
            "shape": {"type": "sphere", "radius": 0.4, "center": [0.0, 0.0, 0.0]},
            "body": {"kind": "grid", "spacing": 0.2},
            "material": {"youngs_modulus": 2e5, "density": 1000.0},
            "attached": [{"mass": 1.0, "point": [0.1, 0.9, 0.0]}],
        },
    ],
}


def changed(place=None, value=None, **top):
    """A copy with a key of the first part, and keys at the top, replaced."""
    scene = copy.deepcopy(SCENE) | top
    if place is not None:
        scene["parts"][0][place] = value
    return scene


def test_parts_survive_a_round_trip_to_equal_bytes(tmp_path):
    first = load_scene(write(tmp_path / "a.toml", SCENE))
    assert [part.name for part in first.parts] == ["jelly", "ball"]
    assert first.parts[1].velocity == (0.3, -1.0, 0.0)
    assert first.contact.friction == 0.3
    first.save(tmp_path / "b.toml")
    load_scene(tmp_path / "b.toml").save(tmp_path / "c.toml")
    assert (tmp_path / "b.toml").read_bytes() == (tmp_path / "c.toml").read_bytes()
    second = load_scene(tmp_path / "b.toml")
    for one, other in zip(first.scenes, second.scenes, strict=True):
        assert np.array_equal(one.body.nodes, other.body.nodes)
        assert one.material == other.material
        assert (one.law, one.fixed, one.loads) == (other.law, other.fixed, other.loads)


def test_scenes_of_parts_made_in_python_are_saved(tmp_path):
    ball = pl.GridBody(pl.shapes.sphere(radius=0.4), 0.2)
    many = pl.Material(youngs_modulus=np.linspace(1e3, 2e3, len(ball.cells)))
    parts = [pl.Part("a", ball, many), pl.Part("b", ball, position=(1, 0, 0))]
    scene = pl.Scene(parts=parts)
    scene.save(tmp_path / "a.toml")
    assert (tmp_path / "a.cells.npz").is_file()  # a modulus for each cell is no text
    again = pl.load_scene(tmp_path / "a.toml")
    assert np.array_equal(again.parts[0].material.youngs_modulus, many.youngs_modulus)
    assert again.parts[1].body is again.parts[0].body  # equal ones are cut once
    assert np.array_equal(again.body.nodes, scene.body.nodes)


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (changed(parts=[]), "parts: it must have at least 1 entries"),
        (changed(parts={"name": "a"}), "parts: it must be a list"),
        (changed(parts=["jelly"]), r"parts\[0\]: it must be a table"),
        (changed("name", "two words"), r"parts\[0\]: a part is called by a word"),
        (changed("name", "ball"), "two are called 'ball'"),
        (changed("colour", 1), r"parts\[0\].colour: there is no such key"),
        (changed("postion", [0, 0, 0]), r"parts\[0\].postion: .*did you mean 'position'"),
        (changed("position", [0.0, "x", 0.0]), r"parts\[0\].position\[1\]: it must be a number"),
        (changed("position", [0.0]), r"parts\[0\].position: .*at least 2"),
        (changed("model", "jelly"), r"parts\[0\].model: there is no model 'jelly'"),
        (changed("law", "neo"), r"parts\[0\].*neo"),
        (changed("shape", {"type": "bxo"}), r"parts\[0\].shape.*bxo"),
        (changed("shape", {"type": "circle", "radius": 1.0}), "shape is 3D, but the body is 2D"),
        (changed("body", {"spacing": -1.0}), r"parts\[0\].body.spacing: .*greater than 0"),
        (changed("body", {"kind": "tets", "spacing": 1.0}), r"parts\[0\].body.spacing: tets"),
        (changed("loads", [{"type": "pressure"}]), r"parts\[0\].loads\[0\].region: .*missing"),
        (changed("loads", [{"type": "push"}]), r"parts\[0\].loads\[0\].type: 'push' is unknown"),
        (changed("material", {"youngs": 1}), r"parts\[0\].material.youngs: .*youngs_modulus"),
        (changed(gravity=[0.0, -9.81, "g"]), r"gravity\[2\]: it must be a number"),
        (changed(material={"density": 1.0}), r"material: .*parts\[0\].material, of each part"),
        (changed(initial_spin=[0, 0, 1]), r"initial_spin: .*parts\[0\].spin"),
        (changed(start="equilibrium"), "start: a scene of parts has none"),
        (changed(kind="nothing known"), "kind"),
        (changed(integrator={"type": "CentralDifferences", "dt": 1e-4}), "CentralDifferences"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, scene, words):
    path = write(tmp_path / "wrong.toml", scene)
    with pytest.raises(BadInput, match=words) as told:
        load_scene(path)
    assert str(told.value).startswith(str(path))
    assert "\n" not in str(told.value)


def test_meshes_of_parts_are_kept(tmp_path):
    mesh = pl.TetBody(pl.shapes.sphere(radius=0.4), edge_length=0.5)
    grid = pl.GridBody(pl.shapes.sphere(radius=0.4), 0.2)
    parts = [pl.Part("mesh", mesh), pl.Part("grid", grid, position=(1, 0, 0))]
    scene = pl.Scene(parts=parts)
    save_scene(scene, tmp_path / "scene.toml")
    assert store_bodies(scene, tmp_path / "body.npz")
    again = build_scene(
        pl.app.describing.scene_files.read_description(tmp_path / "scene.toml"),
        make_body=stored_maker(tmp_path / "body.npz"),
    )
    assert np.array_equal(again.body.nodes, scene.body.nodes)
    assert not store_bodies(pl.Scene(parts=parts[1:]), tmp_path / "none.npz")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in a folder: (scene file, folder)."""
    folder = tmp_path_factory.mktemp("parts")
    scene = write(folder / "two.toml", SCENE)
    subprocess.run(
        [sys.executable, "-m", "pliant", "simulate", scene, "--out", folder / "run"],
        check=True, capture_output=True,
    )  # fmt: skip
    return scene, folder / "run"


def test_a_run_tells_its_parts(run):
    _, folder = run
    result = json.loads((folder / "result.json").read_text())
    assert [part["name"] for part in result["parts"]] == ["jelly", "ball"]
    assert sum(part["nodes"] for part in result["parts"]) == result["nodes"]
    assert result["energies"]["contact"] > 0.0
    assert (folder / "final.png").stat().st_size > 1000
    frame = meshio.read(folder / "trajectory" / "frame_000006.vtu")
    part = np.concatenate(frame.cell_data["part"])
    moduli = np.concatenate(frame.cell_data["youngs_modulus"])
    assert moduli[part == 0] == pytest.approx(1e5)
    assert moduli[part == 1] == pytest.approx(2e5)
    box = frame.points[np.concatenate([b.data.reshape(-1) for b in frame.cells])]
    assert box.max(axis=0)[1] == pytest.approx(1.32 - 0.06, abs=0.02)  # the ball has fallen


def test_killed_it_goes_on_with_the_same_bits(run, tmp_path):
    scene, whole = run
    words = [sys.executable, "-m", "pliant", "simulate", scene, "--out", tmp_path / "run",
             "--no-pictures"]  # fmt: skip
    started = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (tmp_path / "run" / "trajectory" / "state_000003.npz").is_file():
        assert started.poll() is None
        time.sleep(0.005)
    started.send_signal(signal.SIGKILL)
    started.wait()
    subprocess.run(words, check=True, capture_output=True)
    for name in ("trajectory/state_000006.npz", "trajectory/frame_000006.vtu", "scene.toml"):
        one, other = (folder / name for folder in (whole, tmp_path / "run"))
        if name.endswith(".npz"):
            with np.load(one) as a, np.load(other) as b:
                for key in ("displacement", "velocity", "acceleration"):
                    assert a[key].tobytes() == b[key].tobytes()
        else:
            assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ("render", "--colour", "stress", "--out", "a.png", "--width", "80", "--height", "60"),
        ("render", "--colour", "strain", "--out", "b.png", "--width", "80", "--height", "60"),
        ("export", "--out", "a.glb"),
        ("export", "--format", "vtu", "--out", "vtu"),
        ("export", "--format", "nrrd", "--out", "nrrd"),
        ("export", "--format", "ply", "--out", "ply"),
    ],
)
def test_runs_are_drawn_and_exported(run, tmp_path, capfd, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    code, out, err = in_process(capfd, monkeypatch, words[0], run[1], *words[1:])
    assert code == 0, err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("modes",), "pliant modes takes a scene of one body"),
        (("static",), "pliant static takes a scene of one body"),
        (("compare", "--models", "corotated,linear"), "pliant compare takes a scene of one body"),
        (("render", "--style", "field", "--steps", "1", "--out", "a.png"), "draws one body"),
        (("simulate", "--shape", "x.ply"), "--shape is for a scene of one body"),
        (("simulate", "--spacing", "-1"), "--spacing must be a positive length"),
    ],
)
def test_what_takes_one_body_says_so(run, tmp_path, capfd, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    code, out, err = in_process(capfd, monkeypatch, words[0], run[0], *words[1:])
    assert code != 0
    assert told in err
    assert "Traceback" not in err


def test_fineness_is_of_every_part(run):
    from pliant.app.describing.fineness import Fineness

    coarse = build_scene(Fineness(cells_across=2).of(SCENE))
    assert [own.body.spacing for own in coarse.scenes] == pytest.approx([0.25, 0.4])
