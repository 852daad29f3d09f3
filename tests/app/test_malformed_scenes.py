"""Wrong input: one sentence, a non-zero exit code, and no traces."""

import math
import time

import pytest
from command_line import BLOCK, block, in_process, pliant, write

from waiting import PATIENCE

SPHERE = {"type": "sphere", "radius": 0.5}

WRONG = {
    "unknown table": (block(materal={}), "materal: there is no such key; did you mean 'material'?"),
    "unknown key": (
        block(material={"young_modulus": 1.0}),
        "material.young_modulus: there is no such key; did you mean 'youngs_modulus'?",
    ),
    "unknown key in a list": (
        block(loads=[{"type": "traction", "region": SPHERE, "forse": [0, 1, 0]}]),
        "loads[0].forse: there is no such key; did you mean 'force'?",
    ),
    "key named like its type": (
        block(
            loads=[
                {
                    "type": "point", "point": [0, 0, 0], "force": [0, 0, 0],
                    "history": {"tmes": [1.0], "factors": [1.0]},
                }
            ]
        ),
        "loads[0].history.tmes: there is no such key; did you mean 'times'?",
    ),
    "missing key": (block(loads=[{"type": "point", "point": [0, 0, 0]}]), "loads[0].force"),
    "no shape": ({"body": {"spacing": 0.1}}, "shape: this table is missing"),
    "unknown load": (block(loads=[{"type": "wind"}]), "loads[0].type: 'wind' is unknown"),
    "load without type": (block(loads=[{"force": [0, 0, 0]}]), "loads[0].type"),
    "negative modulus": (block(material={"youngs_modulus": -1.0}), "greater than 0, not -1"),
    "text for a number": (block(material={"density": "heavy"}), "must be a number, not 'heavy'"),
    "not a number": (block(material={"density": math.nan}), "finite number, not nan"),
    "infinite": (block(gravity=[0.0, -math.inf, 0.0]), "gravity[1]: it must be a finite number"),
    "branch without a time": (
        block(material={"branches": [{"modulus": 10.0}]}),
        "material.branches[0].time: this key is missing",
    ),
    "branch that never relaxes": (
        block(material={"branches": [{"modulus": 10.0, "time": 0.0}]}),
        "material.branches[0].time: it must be greater than 0, not 0",
    ),
    "branches of a frozen step": (
        block(model="corotated-frozen", material={"branches": [{"modulus": 1.0, "time": 1.0}]}),
        "model = 'corotated-frozen' knows no viscoelastic branches: use 'corotated' or a law.",
    ),
    "incompressible": (block(material={"poisson_ratio": 0.5}), "less than 0.5"),
    "wrong cell count": (block(material={"density": [1.0, 2.0]}), "each of the 16 cells"),
    "damping twice": (
        block(
            material={
                "mass_damping": 1.0, "damping_frequencies": [1, 2], "damping_ratios": [0.1, 0.1],
            }
        ),
        "not both",
    ),
    "short vector": (block(gravity=[1.0]), "gravity: it must have at least 2 entries"),
    "unknown integrator": (block(integrator={"type": "newmark"}), "did you mean 'Newmark"),
    "foreign parameter": (block(integrator={"type": "Newmark2", "theta": 0.6}), "integrator.theta"),
    "theta too small": (block(integrator={"type": "Newmark1", "theta": 0.2}), "at least 0.5"),
    "no time step": (block(integrator={"type": "Newmark1", "dt": 0.0}), "integrator.dt"),
    "half a step": (block(steps=1.5), "steps: it must be a whole number"),
    "negative steps": (block(steps=-3), "steps: it must be at least 0"),
    "unknown shape": (block(shape={"type": "spere", "radius": 1.0}), "did you mean 'sphere'?"),
    "bad radius": (block(shape={"type": "sphere", "radius": -1.0}), "greater than zero"),
    "no such file": (block(shape={"file": "missing.ply"}), "missing.ply"),
    "unbounded": (block(shape={"type": "half_space", "normal": [0, 1, 0]}), "unbounded"),
    "grid with edges": (block(body={"kind": "grid", "edge_length": 0.1}), "body.edge_length"),
    "no spacing of a sheet": (
        block(body={"kind": "grid"}, shape={**BLOCK["shape"], "size": [1.0, 1.0, 0.001]}),
        "body: The shape is thin",
    ),
    "spacing too large": (
        block(body={"spacing": 50.0}, shape=SPHERE | {"center": [3, 3, 3]}),
        "no inside",
    ),
    "spacing too small": (block(body={"spacing": 1e-5}), "lattice nodes"),
    "region beside the body": (
        block(fixed=[{"region": SPHERE | {"center": [9, 9, 9]}}]),
        "fixed[0]: the region touches no part",
    ),
    "flat region": (
        block(fixed=[{"region": {"type": "circle", "radius": 1.0}}]),
        "fixed[0].region: this shape is 2D, but the body is 3D",
    ),
    "bad axes": (block(fixed=[{"region": SPHERE, "axes": "w"}]), "fixed[0].axes"),
    "times without values": (block(fixed=[{"region": SPHERE, "times": [0.0]}]), "belong together"),
    "times that go back": (
        block(fixed=[{"region": SPHERE, "times": [1.0, 0.0], "displacements": [[0, 0], [1, 1]]}]),
        "must ascend",
    ),
    "plane without normal": (
        block(obstacles=[{"type": "plane", "normal": [0, 0, 0]}]),
        "obstacles[0]: A plane needs a normal of positive length",
    ),
    "model": (
        block(model="neo-hooke"), "a law has a key of its own, law = 'neo-hookean'"
    ),
    "not a table": (block(body=3), "body: it must be a table"),
}  # fmt: skip

BYTES = {
    "not toml": (b"[shape\ntype = ", "not valid TOML"),
    "binary": (bytes(range(256)), "not a text file"),
    "zeros": (b"a = 1\n\0\0", "zero bytes"),
    "empty": (b"", "shape: this table is missing"),
    "twice": (b"steps = 1\nsteps = 2\n", "not valid TOML"),
    "deep": (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
    "huge": (b"# " + b"x" * 11_000_000, "larger than 10 MB"),
}


def refused(code: int, out: str, err: str, folder, expected: str) -> None:
    assert code == 2
    assert out == ""
    assert expected in err
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    assert not folder.exists()


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values(case, tmp_path, capfd, monkeypatch):
    description, expected = WRONG[case]
    file = write(tmp_path / "scene.toml", description)
    begun = time.monotonic()
    answer = in_process(capfd, monkeypatch, "simulate", file, "--out", tmp_path / "out", "--json")
    refused(*answer, tmp_path / "out", expected)
    assert "scene.toml" in answer[2]
    assert time.monotonic() - begun < PATIENCE


@pytest.mark.parametrize("case", BYTES)
def test_wrong_files(case, tmp_path, capfd, monkeypatch):
    data, expected = BYTES[case]
    file = tmp_path / "scene.toml"
    file.write_bytes(data)
    answer = in_process(capfd, monkeypatch, "simulate", file, "--out", tmp_path / "out")
    refused(*answer, tmp_path / "out", expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["simulate", "toru"], "did you mean 'torus'?"),
        (["simulate", "nowhere/scene.toml"], "there is no such file"),
        (["simulate", "."], "is a folder"),
        (["simulate", "a\0b"], "There is no scene"),
        (["simulate", "bar", "--steps", "many"], "--steps"),
        (["simulate", "bar", "--steps", "-1"], "--steps must not be negative"),
        (["simulate", "bar", "--every", "0"], "--every"),
        (["simulate", "bar", "--device", "cuda:99"], "cuda:99"),
        (["simulate", "bar", "--threads", "0"], "threads must be at least 1"),
        (["simulate", "bar", "--shape", "missing.npz"], "there is no such shape file"),
        (["simulate", "bar", "--stps", "3"], "--stps"),
        (["simulat", "bar"], "simulat"),
        (["simulate"], "SCENE"),
        (["static", "bar", "--tolerance", "2"], "--tolerance"),
        (["modes", "bar", "--count", "0"], "count must lie between"),
    ],
)
def test_wrong_arguments(arguments, expected, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(*in_process(capfd, monkeypatch, *arguments), tmp_path / "runs", expected)
    assert not list(tmp_path.iterdir())


def test_links_are_not_followed(tmp_path, capfd, monkeypatch):
    write(tmp_path / "real.toml", block())
    (tmp_path / "link.toml").symlink_to(tmp_path / "real.toml")
    answer = in_process(capfd, monkeypatch, "simulate", tmp_path / "link.toml")
    refused(*answer, tmp_path / "out", "symbolic link")


def test_a_folder_with_other_things_stays_as_it_is(tmp_path, capfd, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    code, _, err = in_process(
        capfd, monkeypatch, "simulate", "bar", "--overwrite", "--out", tmp_path / "out"
    )
    assert code == 2
    assert "holds no run" in err
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_as_a_process_too(tmp_path):
    file = write(tmp_path / "scene.toml", WRONG["unknown key"][0])
    done = pliant("simulate", file, "--out", tmp_path / "out", check=2)
    refused(done.returncode, done.stdout, done.stderr, tmp_path / "out", "youngs_modulus")
