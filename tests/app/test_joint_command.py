"""`pliant reconstruct FILE` where FILE lists experiments."""

import json

import pytest
import tomli_w
from command_line import BLOCK, in_process, write

import pliant as pl
from pliant.app.describing.scene_files import load_scene

AT = [[1.0, 0.25, 0.0], [1.0, 0.0, 0.25], [0.5, -0.25, 0.0]]


@pytest.fixture
def two(tmp_path):
    """A block pulled down and a block pulled aside, tracked with noise; their joint file."""
    tables = []
    for k, (name, gravity) in enumerate((("down", (0.0, -9.81, 0.0)), ("aside", (0.0, 0.0, 9.0)))):
        path = write(tmp_path / f"{name}.toml", BLOCK | {"gravity": list(gravity)})
        seen = pl.TrackedPoints.of(pl.simulate(load_scene(path), 8), AT, noise=1e-3, seed=k)
        tracks = {
            "file": f"{name}.csv", "sigma": 1e-3,
            "points": {n: {"at": at} for n, at in zip(seen.names, AT, strict=True)},
        }  # fmt: skip
        pl.save_tracks(seen, tmp_path / f"{name}.csv")
        (tmp_path / f"{name}-tracks.toml").write_text(tomli_w.dumps(tracks))
        tables.append({
            "name": name, "scene": f"{name}.toml", "observations": f"{name}-tracks.toml",
        })  # fmt: skip
    return {
        "experiments": tables,
        "unknowns": {"youngs_modulus": 600.0, "time_offset@aside": 0.0},
        "priors": {"time_offset@aside": "0+-0.001"},
        "fit": {"discretisation": False},
    }


def test_a_joint_fit(two, tmp_path, capfd, monkeypatch):
    file, out = write(tmp_path / "joint.toml", two), tmp_path / "fit"
    code, text, _ = in_process(capfd, monkeypatch, "reconstruct", file, "--out", out, "--json")
    result = json.loads(text)
    assert code == 0, result["reasons"]
    row = result["unknowns"]["youngs_modulus"]
    assert abs(row["value"] - 500.0) < 3.0 * row["sigma"]
    names = [x["name"] for x in result["experiments"]]
    assert names == ["down", "aside"]
    for x in result["experiments"]:
        assert x["agrees"] is True
        assert x["alone"]["youngs_modulus"]["sigma"] > row["sigma"]
    assert list(result["numbers"]) == ["youngs_modulus", "time_offset@aside"]
    assert (out / "opinions.png").stat().st_size > 3000
    assert (out / "experiments" / "aside" / "scene.toml").is_file()
    again = in_process(capfd, monkeypatch, "reconstruct", file, "--out", out)
    assert again[0] == 0
    assert "alone: aside" in again[1]
    assert "is finished already" in again[2]
    code, _, error = in_process(
        capfd, monkeypatch, "reconstruct", file, "--out", out, "--unknown", "youngs_modulus=700"
    )
    assert code == 2
    assert "holds another fit" in error


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"experiments": []}, [], "experiments"),
        ({"experiments": [{"scene": "down.toml"}]}, [], "observations: this key is missing"),
        ({"unknowns": {"density@nobody": 1.0}}, [], "no experiment 'nobody'"),
        ({"priors": {"density": "1+-1"}}, [], "prior on 'density'"),
        ({"more": 1}, [], "more: there is no such key"),
        ({}, ["--observations", "."], "--observations is for one scene"),
        ({"fit": {"field": "tv"}}, [], "one experiment at a time"),
    ],
)
def test_what_is_wrong_is_said(two, tmp_path, capfd, monkeypatch, change, options, words):
    file, out = write(tmp_path / "joint.toml", two | change), tmp_path / "fit"
    code, _, error = in_process(capfd, monkeypatch, "reconstruct", file, "--out", out, *options)
    assert code == 2
    assert words in error
    assert "Traceback" not in error
    assert not out.exists()


def test_a_recording_that_is_not_there(two, tmp_path, capfd, monkeypatch):
    (tmp_path / "aside.csv").unlink()
    file = write(tmp_path / "joint.toml", two)
    code, _, error = in_process(capfd, monkeypatch, "reconstruct", file, "--out", tmp_path / "fit")
    assert code == 2
    assert "aside.csv" in error
    assert not (tmp_path / "fit").exists()


def test_a_prediction(two, tmp_path, capfd, monkeypatch):
    """A fit of one recording foretells the other; a wrong scene is told, and so is bad input."""
    down, aside = ([tmp_path / x[k] for k in ("scene", "observations")] for x in two["experiments"])
    fit, out = tmp_path / "fit", tmp_path / "foretold"
    code, _, error = in_process(
        capfd, monkeypatch, "reconstruct", down[0], "--observations", down[1], "--unknown",
        "youngs_modulus=600", "--out", fit, "--no-report", "--no-discretisation",
    )  # fmt: skip
    assert code == 0, error
    asked = ["predict", fit, "--scene", aside[0], "--observations", aside[1], "--out", out]
    code, text, error = in_process(capfd, monkeypatch, *asked, "--json")
    assert code == 0, error
    told = json.loads(text)
    assert told["covered"] is True
    assert told["rms"] == pytest.approx(1e-3, rel=0.2)
    assert told["material"]["youngs_modulus"]["alone"] == pytest.approx(500.0, rel=0.05)
    assert {p.name for p in out.iterdir()} == {"prediction.json", "prediction.png"}
    code, text, _ = in_process(capfd, monkeypatch, *asked, "--unknown", "time_offset")
    assert code == 0
    assert "fitted to this recording, the material held: time_offset" in text
    heavy = BLOCK | {"material": BLOCK["material"] | {"density": 2.0}, "gravity": [0.0, 0.0, 9.0]}
    write(aside[0], heavy)
    assert "do NOT lie within" in in_process(capfd, monkeypatch, *asked)[1]
    for wrong, words in (
        (["predict", tmp_path, *asked[2:]], "holds no fit"),
        ([*asked, "--unknown", "youngs_modulus"], "it is held"),
        ([*asked[:-1], fit], "holds other things than a prediction"),
        ([*asked[:5], tmp_path / "nowhere", *asked[6:]], "no such folder of observations"),
    ):
        code, _, error = in_process(capfd, monkeypatch, *wrong)
        assert code == 2
        assert words in error
    result = json.loads((fit / "result.json").read_text())
    for change in ({"numbers": 3}, {"correlation": [[None]]}, {"correlation": [[1.0, 2.0]]}):
        (fit / "result.json").write_text(json.dumps(result | change))
        code, _, error = in_process(capfd, monkeypatch, *asked)
        assert code == 2
        assert str(fit) in error
        assert "Traceback" not in error
