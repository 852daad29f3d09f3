"""A fit from the panel: films, converges, shows values with error bars, leaves no process."""

import pytest

from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.editor import Editor
from pliant.app.editor.opening import Opened
from waiting import PATIENCE, soon

pytest.importorskip("viser")

BAR = {
    "title": "bar",
    "steps": 12,
    "shape": {"type": "box", "center": [0.6, 0.0, 0.0], "size": [1.2, 0.4, 0.4]},
    "body": {"kind": "grid", "spacing": 0.1},
    "material": {"youngs_modulus": 400.0, "mass_damping": 0.1, "stiffness_damping": 0.01},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
}


@pytest.fixture
def editor(tmp_path):
    made = Editor(Opened("editor", "bar", build_scene(BAR), tmp_path), threads=1)
    made.start()
    yield made
    made.stop()
    assert not made.processes()


def test_fit_recovers_the_modulus_it_was_filmed_with(editor):
    panel = editor.reconstruct
    panel.unknowns["poisson_ratio"].value = False
    editor.desk.post(panel._start)
    found = soon(lambda: panel._found, 3.0 * PATIENCE)
    assert found, (panel.table.content, editor.timeline.told)
    found, sigma = (panel._found[k]["youngs_modulus"] for k in ("values", "sigma"))
    assert found == pytest.approx(400.0, abs=max(4.0 * sigma, 4.0))
    assert "±" in panel.table.content
    assert editor.observed.present
    assert soon(lambda: panel.pid is None)
    editor.desk.post(panel._use)
    editor.desk.settle()
    assert editor.session.scene.material.youngs_modulus == found


def test_fit_is_stopped_at_once(editor):
    panel = editor.reconstruct
    editor.desk.post(panel._start)
    assert soon(lambda: panel.pid is not None)
    editor.desk.post(panel._stopped)
    editor.desk.settle()
    assert panel.pid is None
    assert not panel.start.disabled


def test_nothing_ticked_is_a_sentence(editor):
    panel = editor.reconstruct
    for box in panel.unknowns.values():
        box.value = False
    editor.desk.post(panel._start)
    editor.desk.settle()
    assert "Tick at least one" in editor.timeline.told
    assert panel.pid is None


def test_recordings_are_those_below_the_folder(editor, tmp_path):
    for place in ("a", "b/c"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "observations.json").write_text("{}")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "observations.json").write_text("{}")
    (tmp_path / "link").symlink_to(outside)
    assert editor.reconstruct._recordings() == ["a", "b/c"]
