"""2D scenes in the editor: drawn filled, coloured, and simulated."""

import numpy as np
import pytest

import pliant as pl
from pliant.app.editor.section import filled
from waiting import soon

pytest.importorskip("viser")


@pytest.mark.parametrize("kind", ["grid", "triangles"])
def test_a_flat_body_is_filled(kind):
    disc = pl.shapes.circle(radius=1.0)
    body = pl.GridBody(disc, 0.2) if kind == "grid" else pl.TetBody(disc, edge_length=0.2)
    found = filled(body)
    points = found.points.at(body.nodes)
    a, b, c = (points[found.faces[:, i]] for i in range(3))
    twice = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert (twice > 0.0).all()
    assert 0.5 * twice.sum() == pytest.approx(np.pi, rel=0.02)
    grown = found.points.at(2.0 * body.nodes)  # carried along
    np.testing.assert_allclose(grown, 2.0 * points, atol=1e-12)


def test_a_flat_scene_opens_and_plays(tmp_path):
    from pliant.app.describing.scene_files import build_scene
    from pliant.app.editor.editor import Editor
    from pliant.app.editor.opening import Opened

    scene = build_scene({
        "shape": {"type": "box", "center": [0.5, 0.0], "size": [1.0, 0.2]},
        "body": {"kind": "grid", "spacing": 0.1}, "gravity": [0.0, -9.81],
        "material": {"youngs_modulus": 500.0},
        "fixed": [{"region": {"type": "box", "center": [0.0, 0.0], "size": [0.02, 0.5]}}],
        "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
    })  # fmt: skip
    editor = Editor(Opened("editor", "flat", scene, tmp_path), threads=1)
    editor.start()
    try:
        editor.desk.post(editor.simulation.step)
        editor.view.colour.value = "von Mises stress"
        editor.desk.post(editor.view.apply)
        assert soon(lambda: len(editor.session.history) > 0)
        assert editor.desk.settle()
        assert not editor.timeline.told
        frame = editor.session.history[0]
        assert frame.u.shape[1] == 2
        drawn = np.asarray(editor.viewport._surface.vertices)
        expected = editor.viewport._skin.points.at(scene.body.nodes + frame.u)
        np.testing.assert_allclose(drawn[:, :2], expected, atol=1e-6)
        np.testing.assert_allclose(drawn[:, 2], 0.0)
        assert editor.viewport.top > 0.0
    finally:
        editor.stop()
