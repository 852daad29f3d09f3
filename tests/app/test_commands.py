"""The other commands."""

import json
from functools import partial
from pathlib import Path

import meshio
import numpy as np
import pytest
from command_line import block, in_process, pliant, write

import pliant as pl
from pliant.app.describing.scene_files import read_description
from pliant.app.describing.scenes import NEEDS_FILE, builtin_description
from pliant.app.terminal.command_table import COMMANDS, load
from pliant.app.terminal.help_text import FEW


def test_scenes(capfd, monkeypatch, tmp_path):
    """Those that need a file are listed where it is."""
    ours = {"bar", "bear", "torus", "cuboid", "drop", "drop-mesh", "elastica"}
    monkeypatch.delenv("PLIANT_DATA", raising=False)
    code, text, _ = in_process(capfd, monkeypatch, "scenes", "--json")
    assert code == 0
    assert set(json.loads(text)["scenes"]) == ours
    (tmp_path / NEEDS_FILE["bunny"]).touch()
    monkeypatch.setenv("PLIANT_DATA", str(tmp_path))
    code, text, _ = in_process(capfd, monkeypatch, "scenes", "--json")
    names = set(json.loads(text)["scenes"])
    assert names == ours | {"bunny"}
    code, text, _ = in_process(capfd, monkeypatch, "scenes")
    assert len(text.splitlines()) == len(names)


def test_a_built_in_scene_as_a_file(capfd, monkeypatch, tmp_path):
    code, text, _ = in_process(capfd, monkeypatch, "scenes", "bar")
    (tmp_path / "my.toml").write_text(text, encoding="utf-8")
    assert code == 0
    assert read_description(tmp_path / "my.toml") == builtin_description("bar")
    code, _, said = in_process(capfd, monkeypatch, "scenes", "baar")
    assert code == 2
    assert "did you mean 'bar'?" in said


def test_json_is_all_there_is_on_standard_output():
    done = pliant("scenes", "--json")
    assert set(json.loads(done.stdout)) == {"scenes"}
    assert done.stderr == ""


def test_static_elastica(tmp_path, capfd, monkeypatch):
    """P L^2 / (E I) = 5: the tip moves to v / L = 0.71379, u / L = 0.38763 (Mattiasson 1981)."""
    code, text, _ = in_process(
        capfd, monkeypatch, "static", "elastica", "--json", "--out", tmp_path / "rest"
    )
    assert code == 0
    result = json.loads(text)
    u, v = result["largest_displacement_vector"]
    assert -v / 20.0 == pytest.approx(0.71379, rel=0.03)
    # the tip's outermost node lies half a thickness off the axis and turns with it
    assert -u / 20.0 == pytest.approx(0.38763, abs=0.03 * 0.38763 + 0.5 / 20.0)
    assert meshio.read(tmp_path / "rest" / "rest.vtu").cells[0].type == "quad"
    assert (tmp_path / "rest" / "rest.png").stat().st_size > 1000


def test_modes_are_those_of_python(tmp_path, capfd, monkeypatch):
    file = write(tmp_path / "block.toml", block())
    code, text, _ = in_process(capfd, monkeypatch, "modes", file, "--count", 3, "--json")
    assert code == 0
    from pliant.app.describing.scene_files import load_scene

    assert json.loads(text)["frequencies"] == pl.modes(load_scene(file), 3).frequencies.tolist()


def test_modes_leave_pictures_and_films(tmp_path, capfd, monkeypatch):
    from PIL import Image

    file, out = write(tmp_path / "block.toml", block()), tmp_path / "modes"
    asked = ("modes", file, "--count", 2, "--out", out, "--json")
    code, text, _ = in_process(capfd, monkeypatch, *asked)
    assert code == 0
    result = json.loads(text)
    assert sorted(p.name for p in out.iterdir()) == sorted([*result["files"], "modes.json"])
    assert json.loads((out / "modes.json").read_text())["frequencies"] == result["frequencies"]
    with Image.open(out / "mode_02.gif") as film:
        assert film.n_frames == 20
    with np.load(out / "modes.npz") as kept:
        assert kept["shapes"].shape[0] == 2
    code, _, err = in_process(capfd, monkeypatch, *asked)
    assert code == 2
    assert "holds modes already" in err
    assert in_process(capfd, monkeypatch, *asked, "--overwrite")[0] == 0


def test_static_without_support_fails(tmp_path, capfd, monkeypatch):
    file = write(tmp_path / "free.toml", block(fixed=[]))
    code, out, err = in_process(capfd, monkeypatch, "static", file, "--json")
    assert code == 3
    assert out == ""
    assert err.count("\n") == 1


def test_static_leaves_a_run_that_others_take(tmp_path, capfd, monkeypatch):
    from pliant.app.editor.opening import open_target

    file, out = write(tmp_path / "block.toml", block()), tmp_path / "rest"
    code, text, _ = in_process(capfd, monkeypatch, "static", file, "--out", out, "--json")
    assert code == 0
    rest = pl.solve_static(pl.load_scene(file))
    opened = open_target(str(out))
    assert opened.kind == "player"
    assert [f.t for f in opened.frames] == [0.0, 1.0]  # shares of the load
    assert np.abs(opened.frames[0].u).max() == 0.0
    assert opened.frames[1].u == pytest.approx(rest, abs=1e-6 * np.abs(rest).max())
    for command, name in (("render", "rest.png"), ("export", "rest.glb")):
        code, text, _ = in_process(
            capfd, monkeypatch, command, out, "--out", tmp_path / name, "--json"
        )
        assert code == 0
        assert json.loads(text)["frames"] == (1 if command == "render" else 2)
    for command, why in (("simulate", "at rest"), ("static", "already")):
        code, _, err = in_process(capfd, monkeypatch, command, file, "--out", out)
        assert code == 2
        assert why in err
    code, _, err = in_process(capfd, monkeypatch, "observe", out, "--out", tmp_path / "film")
    assert code == 2
    assert "no motion" in err


def test_static_has_a_limit_and_shows_how_it_goes(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("pliant.app.terminal.progress.PATIENCE", -1.0)
    monkeypatch.setattr("pliant.app.terminal.progress.QUIET_INTERVAL", -1.0)
    file, out = write(tmp_path / "block.toml", block()), tmp_path / "rest"
    code, _, err = in_process(
        capfd, monkeypatch, "static", file, "--out", out, "--iterations", 1, "--tolerance", 1e-12
    )
    assert code == 3
    told, end = err.strip().splitlines()
    assert "0 of 100, trying 100.0% of the load, imbalance" in told
    assert "no rest in 1 iterations: at 100% of its load" in end
    assert not out.exists()
    for option in ("--iterations", "--seconds"):
        code, _, err = in_process(capfd, monkeypatch, "static", file, option, 0)
        assert code == 2
        assert option in err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal(name, capfd, monkeypatch):
    """Within 80 columns, with every option, and in groups where there are many."""
    _, text, _ = in_process(capfd, monkeypatch, name, "--help")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    options = [p for p in load(name).params if p.param_type_name == "option" and not p.hidden]
    for option in options:
        assert all(f"  {word}" in text or f"/ {word}" in text for word in option.opts)
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert len(headings) >= (5 if len(options) > FEW else 1)
    # what an option does has half of the width or more, and most are said in a line or two
    assert len(lines) < 8 + 3 * len(options) + len(headings)
    if name == "reconstruct":
        assert "[[experiments]]" in text
        assert len(lines) < 110


def test_what_is_no_scene_and_no_recording(tmp_path, capfd, monkeypatch):
    """A run's surface.ply was taken for a recording of one frame."""
    file, out = write(tmp_path / "block.toml", block()), tmp_path / "run"
    run = partial(in_process, capfd, monkeypatch)
    assert run("simulate", file, "--steps", 1, "--no-pictures", "--out", out)[0] == 0
    (tmp_path / "empty").mkdir()
    for words, said in (
        (("reconstruct", file, "--observations", out), "holds what was computed, and no recording"),
        (("scan", out, "--out", tmp_path / "s.npz"), "holds what was computed, and no recording"),
        (("simulate", tmp_path / "empty"), "is a folder, but holds no scene (scene.toml)"),
        (("simulate", ""), "There is no scene ''"),
        (("simulate", file, "--out", ""), "--out is empty"),
        (("render", out, "--style", "slice", "--slice-axis", "x", "--slice-at", 9, "--out",
          tmp_path / "p.png"), "misses the body, which reaches from x = "),
    ):  # fmt: skip
        code, _, err = run(*words)
        assert (code, err.count("\n")) == (2, 1)
        assert said in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["block.toml", "empty", "run"]


@pytest.mark.parametrize("command", ["observe", "modes", "render", "export", "landscape"])
def test_a_place_that_cannot_be_written_is_refused_first(command, tmp_path, capfd, monkeypatch):
    """Before anything is simulated; root may write anywhere, so that it is asked otherwise."""
    file, out = write(tmp_path / "block.toml", block()), tmp_path / "sub" / "x.glb"
    (tmp_path / "sub").mkdir()
    out = out.with_suffix(".png") if command == "render" else out
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path / "sub")
    monkeypatch.setattr("pliant.app.folders.films.simulate", None)
    monkeypatch.setattr("pliant.dynamics.modes.modes", None)
    code, _, err = in_process(capfd, monkeypatch, command, file, "--out", out)
    assert code == 2
    assert f"{out}: cannot be written (no permission for {tmp_path / 'sub'})." in err


def test_a_wrong_option_names_the_help_that_lists_it(capfd, monkeypatch):
    code, _, err = in_process(capfd, monkeypatch, "modes", "bar", "--cuont", 3)
    assert (code, err.count("\n")) == (2, 1)
    assert "--count" in err
    assert "(see pliant modes --help)" in err


def test_help_and_version(capfd, monkeypatch):
    assert in_process(capfd, monkeypatch, "--version")[1].strip() == pl.__version__
    for command in ("demo", "scenes", "simulate", "static", "modes"):
        code, text, _ = in_process(capfd, monkeypatch, command, "--help")
        assert code == 0
        assert "--json" in text
