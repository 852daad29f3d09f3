"""Laws in scene files and from the command line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import pliant as pl
from pliant.app.describing.scene_files import build_scene, describe_scene
from pliant.app.terminal.application import app

BASE = {
    "shape": {"type": "box", "center": [0, 0, 0], "size": [0.4, 0.2, 0.2]},
    "body": {"kind": "grid", "spacing": 0.1},
    "fixed": [{"region": {"type": "half_space", "normal": [1, 0, 0], "offset": -0.19}}],
    "steps": 2,
}


@pytest.mark.parametrize("law", [
    "neo-hookean",
    {"name": "mooney-rivlin", "c10": 120.0, "c01": 40.0, "kappa": 2000.0, "invertible": True},
])  # fmt: skip
def test_round_trip(law):
    scene = build_scene({**BASE, "law": law}, name="x")
    again = build_scene(describe_scene(scene), name="x")
    assert repr(again.law) == repr(scene.law)
    a, b = (pl.simulate(s, 2).displacements for s in (scene, again))
    assert np.abs(a).max() > 0.0
    assert np.array_equal(a, b)


def test_wrong_entries_say_what_to_write():
    for law, text in (
        ("neohookean", "law: There is no law called 'neohookean'"),
        ({"c10": 1.0}, "law: give its name"),
        ({"name": "yeoh", "c1": 1.0}, "law: The law 'yeoh' needs 'c2'"),
        ({"name": "fung", "mu": "soft", "b": 1.0, "kappa": 1.0}, "law: fung: mu must be a number"),
    ):
        with pytest.raises(pl.BadInput, match=text.replace("(", "\\(")):
            build_scene({**BASE, "law": law}, name="x")


def test_simulate_command(tmp_path):
    scene = build_scene({**BASE, "law": "stable-neo-hookean"}, name="x")
    scene.save(tmp_path / "soft.toml")
    result = CliRunner().invoke(
        app, ["simulate", str(tmp_path / "soft.toml"), "--out", str(tmp_path / "run"), "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["steps"] == 2


def test_scenes_without_a_law_are_untouched():
    """No `law` in the file, none in the scene, and the same system as ever."""
    from dataclasses import replace

    from pliant.dynamics.implicit import ImplicitModel

    scene = build_scene(BASE, name="x")
    assert scene.law is None
    assert "law" not in describe_scene(scene)
    assert not ImplicitModel(scene).elastic.linear  # the corotated energy
    assert ImplicitModel(replace(scene, model="linear")).elastic.linear
