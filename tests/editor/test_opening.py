"""Run directories open as a player, fits with what was seen; both without a browser."""

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.editor import Editor
from pliant.app.editor.opening import open_target
from pliant.app.fitted.fit_directory import SEEN, FitDirectory
from pliant.app.folders.films import Film
from pliant.app.folders.runs import RunDirectory, describe, run_scene
from pliant.core.errors import BadInput
from pliant.observe.files import save_observations
from pliant.observe.observations import Frame, Observations

pytest.importorskip("viser")

BLOCK = {
    "title": "block",
    "steps": 5,
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.4, 0.4]},
    "body": {"kind": "grid", "spacing": 0.2},
    "material": {"youngs_modulus": 300.0, "mass_damping": 0.5, "stiffness_damping": 0.02},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
}


@pytest.fixture
def editor_of():
    made = []

    def make(opened):
        editor = Editor(opened, threads=1)
        made.append(editor)
        editor.start()
        assert editor.desk.settle()
        return editor

    yield make
    for editor in made:
        editor.stop()
        assert not editor.processes()
        assert not editor.viser.path.exists()


def test_run_directory_is_a_player(tmp_path, editor_of):
    scene = build_scene(BLOCK)
    directory = RunDirectory(tmp_path / "run")
    directory.begin(scene, describe(scene)[1])
    run_scene(scene, directory, steps=5)
    run = pl.simulate(scene, 5)
    opened = open_target(str(tmp_path / "run"))
    assert (opened.kind, len(opened.frames)) == ("player", 6)
    editor = editor_of(opened)
    assert editor.timeline.shown.t == pytest.approx(0.1)
    tips = [editor.session.history[i].numbers["tip"] for i in range(6)]
    points = scene.body.surface.points.at(run.displacements[5])
    assert tips[-1] == pytest.approx(np.linalg.norm(points[editor.session.tip()]), rel=1e-5)
    assert tips == sorted(tips)
    for order, t in (("Reset", 0.0), ("Step", 0.02), ("Step", 0.04)):
        editor.desk.post(lambda order=order: editor._run(order))
        editor.desk.settle()
        assert editor.timeline.shown.t == pytest.approx(t)
    assert not editor.processes()  # nothing is computed


def test_fit_directory_shows_points_over_the_fitted_surface(tmp_path, editor_of):
    scene = build_scene(BLOCK)
    directory = FitDirectory(tmp_path / "fit")
    asked = {"unknowns": {"youngs_modulus": 330.0, "poisson_ratio": 0.32}, "cost": "auto"}
    directory.begin(scene, asked)
    run = pl.simulate(scene, 5)
    save_observations(Film(cameras=3, pixels=24, noise="0").take(run), directory.path / SEEN)
    rows = {
        "youngs_modulus": {"truth": 300.0, "start": 330.0, "value": 300.0, "sigma": 4.0},
        "poisson_ratio": {"truth": 0.3, "start": 0.32, "value": 0.3, "sigma": 0.02},
    }
    directory.write_result({"status": "finished", "unknowns": rows, "advice": ["look closer"]})
    opened = open_target(str(tmp_path / "fit"))
    assert opened.kind == "fit"
    assert opened.scene.material.youngs_modulus == pytest.approx(300.0)
    assert opened.scene.material.poisson_ratio == pytest.approx(0.3)
    editor = editor_of(opened)
    assert "300** ± 4" in editor.fit.table.content
    assert set(editor.fit.sliders) == set(rows)
    assert editor.observed.last_time == pytest.approx(0.1)
    at = scene.body.surface.positions(scene.body.nodes + run.displacements[5])
    middles = at[scene.body.surface.facets].mean(axis=1)
    none = np.full(len(middles), -1)
    frame = Frame(0.1, middles, none, none, np.full(len(middles), np.nan))
    editor.observed.load(Observations([frame]), scene.body)
    editor.observed.show(0.1, at)  # the true motion: the points lie on it
    assert editor.observed.rms < 1e-9
    rest = scene.body.surface.positions(scene.body.nodes)
    editor.observed.show(0.1, rest)
    assert editor.observed.rms > 0.005
    changed = opened.fit.scene_at({"youngs_modulus": 350.0, "poisson_ratio": 0.31})
    assert changed.material.youngs_modulus == pytest.approx(350.0)


def test_what_cannot_be_opened_is_a_sentence(tmp_path):
    with pytest.raises(BadInput, match="neither a run"):
        open_target(str(tmp_path))
    with pytest.raises(BadInput, match="did you mean 'torus'"):
        open_target("tours")
    scene = build_scene(BLOCK)
    directory = FitDirectory(tmp_path / "fit")
    directory.begin(scene, {"unknowns": {"density": 1.0}})
    with pytest.raises(BadInput, match="not finished"):
        open_target(str(tmp_path / "fit"))
