"""Editing without a page: undo, uploads, the mouse's pull, keys, what the status line says."""

import asyncio
import io
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.editor import Editor
from pliant.app.editor.history import Frame
from pliant.app.editor.keys import KEYS, bind_keys
from pliant.app.editor.opening import Opened
from pliant.app.editor.placing import placed, sensible_scale
from pliant.app.editor.pull import grip
from pliant.app.editor.session import Session
from pliant.core.errors import BadInput
from pliant.dynamics.march import march
from pliant.geometry.shapes import shape_from_dict

pytest.importorskip("viser")

BLOCK = {
    "title": "block",
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.5, 0.5]},
    "body": {"kind": "grid", "spacing": 0.25},
    "gravity": [4.0, -9.0, 3.0],
    "material": {"youngs_modulus": 500.0},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
}


@pytest.fixture
def session(tmp_path):
    return Session(build_scene(BLOCK), name="block", folder=tmp_path)


@pytest.fixture
def editor(tmp_path):
    made = Editor(Opened("editor", "block", build_scene(BLOCK), tmp_path), threads=1)
    made.start()
    assert made.desk.settle()
    yield made
    made.stop()


# --- undo and redo


def test_edits_are_undone_and_made_again(session):
    first, body = session.description, session.body
    session.set("material", youngs_modulus=900.0)
    session.change(body={"kind": "grid", "spacing": 0.125})
    told = []
    session.listeners.append(told.append)
    session.undo()
    assert session.body is body  # not built anew
    assert session.scene.material.youngs_modulus == 900.0
    session.undo()
    assert session.description == first
    assert not session.can_undo
    with pytest.raises(BadInput, match="nothing to undo"):
        session.undo()
    session.redo()
    session.redo()
    assert len(session.body.cells) == 8 * 4 * 4
    with pytest.raises(BadInput, match="nothing to redo"):
        session.redo()
    assert told == ["body", "scene", "scene", "body"]


def test_a_new_edit_ends_what_could_be_made_again(session):
    session.set("material", density=2.0)
    session.undo()
    session.change(gravity=[0.0, -1.0, 0.0])
    assert session.can_undo
    assert not session.can_redo


def test_a_dragged_slider_is_one_edit(session):
    for modulus in (600.0, 700.0, 800.0):
        session.set("material", youngs_modulus=modulus)
    session.undo()
    assert session.scene.material.youngs_modulus == 500.0


def test_a_failed_edit_leaves_nothing_to_undo(session):
    with pytest.raises(BadInput):
        session.set("material", youngs_modulus=-1.0)
    assert not session.can_undo


# --- uploads


def test_sizes_of_uploads():
    for size, scale in (
        (1.0, 1.0),
        (4.9, 1.0),
        (0.11, 1.0),
        (9.9, 0.1),
        (170.0, 0.01),
        (0.02, 100),
    ):
        box = pl.shapes.box(center=(5, 5, 5), size=(size, size / 2, size / 3))
        assert sensible_scale(box) == pytest.approx(scale)


def test_a_placed_shape_is_scaled_turned_and_centred():
    box = {"type": "box", "center": [10.0, 20.0, 30.0], "size": [4.0, 2.0, 1.0]}
    lo, hi = shape_from_dict(placed(box, scale=0.5, turn=(0.0, 0.0, 90.0))).bounds
    assert hi - lo == pytest.approx([1.0, 2.0, 0.5])
    assert lo + hi == pytest.approx(np.zeros(3), abs=1e-12)
    centred = {"type": "box", "center": [0.0, 0.0, 0.0], "size": [4.0, 2.0, 1.0]}
    assert placed(centred, turn=(360.0, 0.0, 0.0)) == centred
    with pytest.raises(BadInput, match="scale"):
        placed(box, scale=-1.0)


def ball(radius):
    stream = io.BytesIO()
    mesh = trimesh.creation.icosphere(subdivisions=2, radius=radius)
    mesh.apply_translation((3 * radius, 0, 0))
    mesh.export(stream, file_type="stl")
    return stream.getvalue()


def test_an_upload_takes_its_name_a_size_and_the_earth_s_gravity(editor):
    shape = next(p for p in editor.context.panels if type(p).__name__ == "ShapePanel")
    told = []
    editor.context.say = lambda text: told.append(text)
    file = SimpleNamespace(name="My ball.stl", content=ball(80.0))  # millimetres
    editor.desk.post(lambda: shape._uploaded(file))
    assert editor.desk.settle()
    session = editor.session
    assert session.description["title"] == session.name == "My_ball"
    assert session.description["gravity"] == [0.0, -9.81, 0.0]
    lo, hi = session.shape.bounds
    assert hi - lo == pytest.approx([1.6] * 3, rel=0.02)
    assert np.abs(lo + hi).max() < 1e-6
    assert 1500 < len(session.body.cells) < 6000
    assert told[0].startswith("Reading My_ball.stl")
    assert "about 3,000 cells" in told[1]
    assert "scaled by 0.01" in told[-1]
    shape.scale.value, shape.turn.value = 0.02, (0.0, 90.0, 0.0)
    editor.desk.post(shape._place)
    assert editor.desk.settle()
    assert np.ptp(session.shape.bounds, axis=0) == pytest.approx([3.2] * 3, rel=0.05)
    editor.desk.post(lambda: editor._run("Undo"))
    assert editor.desk.settle()
    assert np.ptp(session.shape.bounds, axis=0) == pytest.approx([1.6] * 3, rel=0.02)


def test_a_model_of_particles_brings_its_sliders(editor):
    panel = next(p for p in editor.context.panels if type(p).__name__ == "SolverPanel")
    assert {"position-based", "shape-matching", "mass-spring"} <= set(panel.model.options)
    editor.desk.post(lambda: panel._set_model("shape-matching"))
    assert editor.desk.settle()
    assert editor.session.scene.model == "shape-matching"
    alpha = panel.own["shape-matching", "alpha"]
    assert alpha.visible
    alpha.value = 0.25
    editor.desk.post(panel._set_numbers)
    assert editor.desk.settle()
    assert editor.session.scene.numbers.alpha == 0.25
    editor.desk.post(lambda: panel._set_model("corotated"))
    assert editor.desk.settle()
    assert not alpha.visible
    assert editor.session.scene.numbers is None


# --- the mouse


def pulled(scene, far, seconds=0.5, after=0.5):
    """Pull the rightmost point towards a target far away, let go: farthest node, and speed."""
    model = scene.make_model()
    state = model.initial_state()
    rest = scene.body.nodes
    tip = int(np.argmax(scene.body.surface.positions(rest)[:, 0]))
    held = grip(scene, model.masses, tip)
    speed = 0.0
    for k in range(round((seconds + after) / scene.dt)):
        now = rest + state.u.numpy()
        pulling = k * scene.dt < seconds
        model.push(held.force(now, state.v.numpy(), np.asarray(far)) if pulling else None)
        state = next(march(model, state, number=k)).after
        mean = model.masses @ state.v.numpy() / model.masses.sum()
        speed = max(speed, float(np.linalg.norm(mean)))
    moved = np.linalg.norm(state.u.numpy(), axis=1)
    return float(moved.max()), speed, held, model


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, -9.81, 0.0)])
def test_a_free_body_is_not_thrown(gravity):
    """The mouse goes 500 m away: the spring stays short, the body no faster than reach * w."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.5), 0.25)
    floor = [pl.Plane(normal=(0, 1, 0), offset=-0.5)]
    scene = pl.Scene(body, pl.Material(2000.0, density=10.0), gravity=gravity, obstacles=floor,
                     integrator=pl.GeneralisedAlpha(dt=0.02))  # fmt: skip
    moved, speed, held, model = pulled(scene, (500.0, 300.0, 0.0))
    frequency = np.sqrt(held.stiffness / model.masses.sum())
    assert held.reach <= 0.25 * np.linalg.norm(np.ptp(body.nodes, axis=0)) + 1e-12
    fall = np.linalg.norm(gravity) * 1.0  # after it was let go, or on the way
    assert speed <= held.reach * frequency + fall + 1e-6
    if not any(gravity):
        assert moved < 2.0 * held.reach * frequency + 1.0
        assert speed > 0.2 * held.reach * frequency  # it follows


def test_a_held_body_is_not_torn():
    scene = build_scene({**BLOCK, "body": {"kind": "grid", "spacing": 0.125}})
    moved, _, held, _ = pulled(scene, (0.0, 1e5, 0.0), seconds=0.3, after=0.0)
    assert 0.02 < moved < 2.0  # of a bar one metre long, however far the mouse is


# --- keys and words


def test_every_key_has_its_order():
    handles = []

    def add_command(label, *, hotkey, modifier):
        handle = SimpleNamespace(key=(hotkey, modifier), do=None)
        handle.on_trigger = lambda do: setattr(handle, "do", do)
        handles.append(handle)
        return handle

    orders = []
    bind_keys(SimpleNamespace(add_command=add_command), orders.append, edits=True)
    for handle in handles:
        asyncio.run(handle.do(None))
    assert orders == [key[3] for key in KEYS]
    assert ("space", None) in [h.key for h in handles]
    assert {"arrowleft", "arrowright"} <= {h.key[0] for h in handles}


def filled_with_frames(editor, count):
    for k in range(count):
        u = np.full_like(editor.session.body.nodes, 0.01 * k).astype(np.float32)
        editor.session.history.append(Frame(k, 0.1 * k, u))


def test_arrows_go_through_the_frames_and_the_camera_follows(editor):
    filled_with_frames(editor, 4)
    camera = SimpleNamespace(position=np.zeros(3), look_at=np.ones(3))
    client = SimpleNamespace(camera=camera, atomic=lambda: __import__("contextlib").nullcontext())
    editor.viewport._server = SimpleNamespace(get_clients=lambda: {0: client})
    editor.viewport.look.follow = True
    for order in ("First", "Forth", "Forth", "Back"):
        editor.desk.post(lambda order=order: editor._key(order))
        assert editor.desk.settle()
    assert editor.timeline.frame.value == 1
    assert editor.timeline.shown.step == 1
    assert camera.position == pytest.approx([0.01] * 3, abs=1e-6)
    assert camera.look_at == pytest.approx([1.01] * 3, abs=1e-6)


def test_paused_is_said_only_of_what_is_paused(editor):
    timeline = editor.timeline
    assert "at rest" in timeline.status.content
    filled_with_frames(editor, 3)
    editor.desk.post(timeline.show_last)
    assert editor.desk.settle()
    assert "paused" in timeline.status.content
    timeline.is_playing = lambda: True  # a run that plays back
    timeline.show_status()
    assert "paused" not in timeline.status.content
    assert "playing" in timeline.status.content


def test_messages_have_room_of_their_own(editor):
    """The same height with and without words, however many; markup in them is text."""
    timeline = editor.timeline
    heights = set()
    for text in ("", "short", "long " * 200, "<script>alert(1)</script>"):
        timeline.say(text, warning=bool(text))
        heights.add(timeline.message.content.split("height:")[1].split(";")[0])
        assert "<script>" not in timeline.message.content
    assert len(heights) == 1
