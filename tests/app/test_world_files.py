"""A world of one's own through scene files, run folders and the command line."""

import json
import signal
import sys
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from command_line import in_process, write

import pliant as pl
from pendulum import ROD, Swing
from pliant.app.describing.scene_files import build_scene, describe_scene, save_scene
from pliant.app.folders.runs import Interrupted, RunDirectory, describe, run_scene
from pliant.dynamics import worlds

TABLE = {"kind": "pendulum", "title": "rod", "steps": 30, "length": 0.75, "dt": 0.02, "angle": 1.0}
BOX = {"type": "box", "center": [0.0, -0.5, 0.0], "size": [0.2, 1.0, 0.2]}


@pytest.fixture
def command(capfd, monkeypatch):
    """A command line in this process: exit code, standard output, standard error."""
    return partial(in_process, capfd, monkeypatch)


def test_a_file_is_the_world(tmp_path):
    scene = pl.load_scene(write(tmp_path / "swing.toml", TABLE))
    assert scene == Swing(length=0.75)
    assert describe_scene(scene) == TABLE
    with_body = TABLE | {"shape": BOX, "body": {"kind": "grid", "spacing": 0.05}}
    other = build_scene(with_body)
    assert len(other.body.nodes) == 5 * 21 * 5
    assert describe_scene(build_scene(describe_scene(other))) == describe_scene(other)
    save_scene(replace(other, length=0.8), tmp_path / "again.toml")
    assert pl.load_scene(tmp_path / "again.toml").length == 0.8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lenght": 1.0}, "lenght: there is no such key; did you mean 'length'"),
        ({"length": "long"}, "length: it must be a finite number, not 'long'."),
        ({"length": -1.0}, "length: it must be greater than 0, not -1.0."),
        ({"length": True}, "length: it must be a finite number, not True."),
        ({"dt": [0.1]}, "dt: it must be a finite number, not [0.1]."),
        ({"steps": 1.5}, "steps: it must be a whole number"),
        ({"title": 3}, "title: it must be a text in quotes, not 3."),
        ({"kind": "pendulun"}, "did you mean 'pendulum'"),
        ({"kind": 3}, "kind: it must be a text in quotes, not 3."),
        ({"body": {"kind": "grid", "spacing": 0.1}}, "shape: this table is missing"),
        ({"shape": {"type": "bxo"}}, "shape"),
        ({"gravity": [0.0, 0.0, 0.0]}, "gravity: there is no such key"),
    ],
)
def test_a_bad_file_ends_in_a_sentence(tmp_path, command, change, said):
    file = write(tmp_path / "swing.toml", TABLE | change)
    code, _, err = command("simulate", file, "--out", tmp_path / "run")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert f"{file}: " in err
    assert said in err
    assert not (tmp_path / "run").exists()


def test_types_of_fields():
    """Lists, texts and choices; a body that a class has of its own cannot be replaced."""

    @worlds.world("several")
    @dataclass(frozen=True)
    class Several(Swing):
        pull: tuple[float, float] = (0.0, -1.0)
        name: str = "a"
        many: tuple[float, ...] | None = None

    @worlds.world("held")
    @dataclass(frozen=True)
    class Held(pl.SmallWorld):
        weight: float
        dt: float = 0.1
        body = ROD

    scene = build_scene({"kind": "several", "pull": [1, 2.5], "many": [1.0, 2.0, 3.0]})
    assert (scene.pull, scene.many) == ((1.0, 2.5), (1.0, 2.0, 3.0))
    assert describe_scene(scene)["many"] == [1.0, 2.0, 3.0]
    assert build_scene({"kind": "held", "weight": 2}).weight == 2.0
    for table, said in (
        ({"kind": "several", "pull": [1.0]}, r"pull: it must have 2 entries, not 1\."),
        ({"kind": "several", "pull": [1.0, "x"]}, r"pull\[1\]: it must be a finite number"),
        ({"kind": "several", "name": 1}, "name: it must be a text in quotes, not 1"),
        ({"kind": "held"}, "weight: this key is missing"),
        ({"kind": "held", "weight": 1.0, "shape": BOX}, "shape: a held brings its own body"),
    ):
        with pytest.raises(pl.BadInput, match=said):
            build_scene(table)
    with pytest.raises(pl.BadInput, match="the kind 'pendulum' is Swing already"):
        worlds.register_world("pendulum", Several)
    with pytest.raises(pl.BadInput, match="only a World with @dataclass"):
        worlds.register_world("plain", type("Plain", (Swing,), {}))

    @dataclass(frozen=True)
    class Nameless(Swing):
        pass

    with pytest.raises(pl.BadInput, match="A Nameless has no name in files yet"):
        describe_scene(Nameless())


def test_installed_packages_bring_worlds(tmp_path, monkeypatch):
    """By their entry points, loaded when they are asked for."""
    info = tmp_path / "swings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: swings\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[pliant.worlds]\nlong-swing = swings:Long\nbroken-swing = swings:Missing\n"
    )
    (tmp_path / "swings.py").write_text(
        "from dataclasses import dataclass\nfrom typing import Any\nimport pliant as pl\n"
        "@dataclass(frozen=True)\nclass Long(pl.SmallWorld):\n"
        "    body: Any = None\n    dt: float = 0.5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert build_scene({"kind": "pendulum"}) == Swing()
    assert "swings" not in sys.modules
    assert build_scene({"kind": "long-swing"}).dt == 0.5
    with pytest.raises(pl.BadInput, match=r"'broken-swing' \(swings:Missing\) cannot be loaded"):
        build_scene({"kind": "broken-swing"})
    with pytest.raises(pl.BadInput, match="known: broken-swing, .*long-swing, pendulum"):
        build_scene({"kind": "xyz"})


def test_a_run_folder_is_resumed_to_the_bit(tmp_path):
    def begun(place):
        scene = build_scene(TABLE)
        directory = RunDirectory(tmp_path / place)
        directory.begin(scene, describe(scene)[1])
        return scene, directory

    scene, whole = begun("whole")
    run_scene(scene, whole, steps=80, every=10)
    scene, parts = begun("parts")
    for step in (7, 71):  # one after the fresh start at step 64

        def progress(done, step=step):
            if done == step:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(Interrupted):
            run_scene(scene, parts, steps=80, every=10, progress=progress)
        assert parts.last_state(ROD.nodes.shape).step == step
    run_scene(build_scene(TABLE), parts, steps=80, every=10)
    straight = pl.simulate(Swing(length=0.75), 80)
    for step in whole.saved_steps():
        a, b = whole.read_state(step), parts.read_state(step)
        assert a.t == b.t
        assert set(a.arrays) == {"angle", "speed"}
        for x, y in ((a.u, b.u), (a.v, b.v), *((a.arrays[n], b.arrays[n]) for n in a.arrays)):
            assert np.array_equal(x, y)
        assert np.array_equal(a.u, straight.displacements[step])
        assert np.array_equal(a.work[:, -8:], b.work[:, -8:])


def test_the_command_line(tmp_path, command, monkeypatch):
    """Interrupted, gone on with, filmed, fitted, drawn and exported; the length comes back."""
    file, out = write(tmp_path / "swing.toml", TABLE), tmp_path / "run"
    taken, advance = [], Swing.advance

    def interrupted(self, **state):
        taken.append(state)
        if len(taken) == 12:
            signal.raise_signal(signal.SIGINT)
        return advance(self, **state)

    with monkeypatch.context() as patched:
        patched.setattr(Swing, "advance", interrupted)
        code, _, err = command("simulate", file, "--out", out)
    assert code == 130
    assert "Interrupted after step 12 of 30" in err
    code, text, err = command("simulate", file, "--out", out, "--json")
    assert code == 0, err
    assert "continued from step 12" in err
    assert json.loads(text)["steps"] == 30
    assert (out / "final.png").stat().st_size > 1000
    straight = pl.simulate(Swing(length=0.75), 30)
    last = RunDirectory(out).read_state(30)
    assert np.array_equal(last.u, straight.displacements[30])
    write(file, TABLE | {"length": 0.8})
    code, _, err = command("simulate", file, "--out", out)
    assert code == 2
    assert "length is 0.75 there, 0.8 here" in err
    write(file, TABLE)

    seen, picture = tmp_path / "seen", tmp_path / "swing.png"
    film = ("--cameras", 4, "--pixels", 40)
    assert command("observe", out, "--out", seen, "--noise", "3mm", *film)[0] == 0
    assert json.loads((seen / "truth.json").read_text())["length"] == 0.75
    assert command("render", out, "--out", picture, "--width", 80, "--height", 60)[0] == 0
    assert picture.stat().st_size > 500
    assert command("export", out, "--out", tmp_path / "frames", "--format", "vtu")[0] == 0
    write(file, TABLE | {"length": 0.7})
    code, text, err = command(
        "reconstruct", file, "--observations", seen, "--unknown", "length=0.7",
        "--out", tmp_path / "fit", "--json",
    )  # fmt: skip
    assert code == 0, err
    row = json.loads(text)["unknowns"]["length"]
    assert row["truth"] == 0.75
    assert row["sigma"] < 1e-3
    assert row["value"] == pytest.approx(0.75, abs=5 * row["sigma"])
    assert (tmp_path / "fit" / "report.html").is_file()
    code, _, err = command(
        "landscape", file, "--over", "length", "angle", "--points", 3, "--steps", 4,
        "--out", tmp_path / "map", *film,
    )  # fmt: skip
    assert code == 0, err
    code, text, err = command(
        "check-gradients", file, "--unknown", "length", "--steps", 4, "--json", *film
    )
    assert code == 0, err
    assert json.loads(text)["unknowns"]["length"]["adjoint_tangent"] < 1e-10


def test_what_only_elastic_bodies_have_is_refused(tmp_path, command):
    file, out = write(tmp_path / "swing.toml", TABLE), tmp_path / "run"
    assert command("simulate", file, "--out", out, "--steps", 2, "--no-pictures")[0] == 0
    for arguments in (
        ("static", file),
        ("modes", file),
        ("view", file, "--no-browser"),
        ("view", out, "--no-browser"),
        ("render", out, "--colour", "stress", "--out", tmp_path / "a.png"),
        ("render", out, "--colour", "strain", "--out", tmp_path / "a.png"),
        ("reconstruct", file, "--materials", "neo-hookean", "--out", tmp_path / "fit"),
        ("reconstruct", file, "--field", "tv", "--out", tmp_path / "fit"),
        ("reconstruct", file, "--unknown", "density", "--out", tmp_path / "fit"),
        ("landscape", file, "--out", tmp_path / "map"),
    ):
        code, _, err = command(*arguments)
        assert code == 2, arguments
        assert len(err.splitlines()) == 1, arguments
        assert (
            "needs an elastic body" in err or "no unknown called" in err or "has no single" in err
        )
