"""--spacing and --cells-across, wherever a body is built."""

import json
import shlex

import numpy as np
import pytest
from command_line import block, in_process, write

from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import builtin_description
from pliant.core.errors import BadInput


@pytest.fixture
def run(capfd, monkeypatch):
    def go(*arguments, code=0):
        got, out, err = in_process(capfd, monkeypatch, *arguments)
        assert got == code, err
        return out, err

    return go


@pytest.fixture
def scene(tmp_path):
    """A block of 1 x 0.5 x 0.5 m."""
    return write(tmp_path / "block.toml", block())


def test_cells_across_the_shortest_side(scene, run):
    text, _ = run("modes", scene, "--count", 1, "--cells-across", 2, "--json")
    assert json.loads(text)["nodes"] == 5 * 3 * 3
    text, _ = run("static", scene, "--cells-across", 4, "--json")
    assert json.loads(text)["cells"] == 8 * 4 * 4


def test_a_run_keeps_its_spacing(scene, run, tmp_path):
    place = ("--out", tmp_path / "run", "--no-pictures", "--json")
    text, _ = run("simulate", scene, *place, "--steps", 2, "--spacing", 0.125)
    assert json.loads(text)["nodes"] == 9 * 5 * 5
    _, err = run("simulate", scene, *place, "--steps", 3, code=2)
    assert "another scene" in err
    text, _ = run("simulate", tmp_path / "run", *place, "--steps", 3)
    assert json.loads(text)["nodes"] == 9 * 5 * 5
    _, err = run("observe", tmp_path / "run", "--spacing", 0.1, "--out", tmp_path / "seen", code=2)
    assert "whose cells are given" in err


def test_what_observe_suggests_has_the_same_cells(scene, run, tmp_path):
    film = ("--cameras", 2, "--pixels", 16, "--steps", 2, "--cells-across", 3)
    text, _ = run("observe", scene, "--out", tmp_path / "seen", *film)
    words = shlex.split(text[text.index("next: ") :])
    assert words[words.index("--cells-across") + 1] == "3"


def test_wherever_a_body_is_built(scene, run, tmp_path):
    film = ("--cameras", 2, "--pixels", 16, "--steps", 2, "--cells-across", 1, "--noise", "1mm")
    text, _ = run("check-gradients", scene, *film, "--unknown", "youngs_modulus", "--json")
    assert json.loads(text)["agree"]
    run("landscape", scene, *film, "--points", 3, "--out", tmp_path / "map")
    assert (tmp_path / "map" / "landscape.png").is_file()
    few = ("--steps", 1, "--cells-across", 4, "--out")
    run("export", scene, *few, tmp_path / "fine", "--format", "vtk")
    assert b"CELLS 128 " in (tmp_path / "fine" / "frame_000001.vtk").read_bytes()
    run("render", scene, *few, tmp_path / "fine.png", "--width", 64, "--height", 48)


def test_units_of_a_shape_on_the_command_line(scene, run, tmp_path):
    """A box of 1000 x 500 x 500 in a file of millimetres is the scene's own."""
    import trimesh

    box = trimesh.creation.box((1000.0, 500.0, 500.0))
    box.apply_translation((500.0, 0.0, 0.0))
    box.export(tmp_path / "mm.stl")
    file = ("--shape", tmp_path / "mm.stl", "--shape-units", "mm")
    found = [
        json.loads(run("modes", scene, "--count", 2, "--json", *words)[0])["frequencies"]
        for words in ((), file)
    ]
    assert np.allclose(*found, rtol=1e-6)
    place = ("--out", tmp_path / "run", "--no-pictures", "--steps", 1)
    run("simulate", scene, *file, *place)
    assert 'units = "mm"' in (tmp_path / "run" / "scene.toml").read_text()
    film = ("--cameras", 2, "--pixels", 16, "--steps", 2, "--out", tmp_path / "seen")
    text, _ = run("observe", scene, *file, *film)
    words = shlex.split(text[text.index("next: ") :])
    assert words[words.index("--shape-units") + 1] == "mm"
    _, err = run("modes", scene, "--shape-units", "mm", code=2)
    assert "goes with --shape" in err
    _, err = run("modes", scene, *file[:2], "--shape-units", "inch", code=2)
    assert "mm, cm, m, not 'inch'" in err


def test_meshes_have_an_edge_length():
    tets = builtin_description("drop-mesh")
    assert Fineness(spacing=0.05).of(tets)["body"]["edge_length"] == 0.05
    across = Fineness(cells_across=4).of(tets)["body"]["edge_length"]
    # the tilted torus of tube radius 0.2: no side is shorter than the tube
    assert 0.1 < across < 0.35
    assert np.isclose(Fineness(cells_across=7).of(builtin_description("torus"))["body"]["spacing"],
                      0.1)  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"spacing": 0.1, "cells_across": 3}, "give one"),
        ({"spacing": -1.0}, "positive length"),
        ({"spacing": float("nan")}, "positive length"),
        ({"cells_across": 0}, "1 to 1000"),
    ],
)
def test_nonsense_is_refused(wrong, said):
    with pytest.raises(BadInput, match=said):
        Fineness(**wrong)


def test_unbounded_shapes_have_no_side():
    endless = block(shape={"type": "half_space", "normal": [0, 1, 0]})
    with pytest.raises(BadInput, match="bounded"):
        Fineness(cells_across=3).of(endless)
    with pytest.raises(BadInput, match="needs a scene with a shape"):
        Fineness(cells_across=3).of({"body": {"kind": "tets", "file": "a.msh"}})
    with pytest.raises(BadInput, match="its cells are given"):
        Fineness(spacing=0.1).of({"body": {"kind": "tets", "file": "a.msh"}})


def test_an_open_mesh_is_warned_of_once(tmp_path, run, caplog):
    """It is read once, too: measured for --cells-across, and then made a body of."""
    import trimesh

    box = trimesh.creation.box((1.0, 0.5, 0.5)).subdivide().subdivide()
    box.update_faces(np.arange(len(box.faces)) != 17)
    box.export(tmp_path / "open.ply")
    file = write(tmp_path / "open.toml", block() | {"shape": {"file": str(tmp_path / "open.ply")}})
    run("modes", file, "--count", 1, "--cells-across", 2)
    assert caplog.text.count("not closed") == 1
