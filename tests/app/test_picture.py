"""Pictures: something is on them, in the middle, in colours; files that open."""

import numpy as np
import pytest
from command_line import block
from PIL import Image

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from pliant.app.folders.export import write_frame, write_index, write_surface
from pliant.app.pictures.picture import Studio, render, save_gif, save_png


@pytest.fixture(scope="module")
def scene():
    return build_scene(block(obstacles=[{"type": "plane", "normal": [0.1, 1, 0], "offset": -1.0}]))


def bent(scene, amount=0.2):
    nodes = scene.body.nodes.copy()
    nodes[:, 1] -= amount * nodes[:, 0] ** 2
    return nodes


def test_a_picture_shows_the_body(scene):
    image = render(scene, bent(scene), width=320, height=240, time=0.1)
    assert image.shape == (240, 320, 3)
    assert image.dtype == np.uint8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 1000
    middle, border = image[100:140, 140:180].astype(int), image[:8].astype(int)
    assert border.min() > 200  # nearly white
    assert abs(middle.mean(axis=(0, 1)) - border.mean(axis=(0, 1))).max() > 60


def test_the_whole_motion_is_in_view(scene):
    """The camera sees every frame's surface, and the motion fills most of the picture."""
    frames = [scene.body.nodes, bent(scene, 0.8), scene.body.nodes + [0.0, 0.7, 0.3]]
    studio = Studio(scene, frames, width=320, height=240)
    right, up, forward = studio.camera.axes()
    for nodes in frames:
        p = scene.body.surface.positions(nodes) - studio.camera.eye
        x = p @ right / (p @ forward) / np.tan(np.radians(15.0)) / (320 / 240)
        y = p @ up / (p @ forward) / np.tan(np.radians(15.0))
        assert max(abs(x).max(), abs(y).max()) < 0.9


def test_one_thread_or_two_draw_the_same_picture(scene):
    from pliant.core.launch import thread_count

    before = thread_count()
    try:
        pl.set_threads(1)
        one = render(scene, bent(scene), width=160, height=120)
        pl.set_threads(2)
        two = render(scene, bent(scene), width=160, height=120)
    finally:
        pl.set_threads(before)
    assert np.array_equal(one, two)


def test_obstacles_are_drawn():
    ball = {"type": "sphere", "radius": 0.4, "center": [0.5, -1.0, 0.0]}
    plain, with_ball = (
        build_scene(block(obstacles=o)) for o in ([], [{"type": "shape", "shape": ball}])
    )
    nodes = plain.body.nodes
    difference = render(plain, nodes, width=160, height=120).astype(int) - render(
        with_ball, nodes, width=160, height=120
    )
    assert (np.abs(difference).max(axis=2) > 30).mean() > 0.02


def test_two_dimensions():
    flat = build_scene(
        {
            "shape": {"type": "circle", "radius": 1.0},
            "body": {"spacing": 0.25},
            "obstacles": [{"type": "plane", "normal": [0.0, 1.0], "offset": -1.5}],
        }
    )
    image = render(flat, flat.body.nodes * [1.2, 0.8], width=320, height=240)
    assert image.shape == (240, 320, 3)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100


def test_infinite_positions_are_refused(scene):
    with pytest.raises(pl.BadInput, match="not finite"):
        render(scene, scene.body.nodes + np.inf)


def test_files_open(scene, tmp_path):
    frames = [render(scene, bent(scene, a), width=64, height=48) for a in (0.0, 0.3)]
    save_png(tmp_path / "a.png", frames[0])
    assert np.array_equal(np.asarray(Image.open(tmp_path / "a.png")), frames[0])
    save_gif(tmp_path / "a.gif", frames)
    assert Image.open(tmp_path / "a.gif").n_frames == 2
    u = bent(scene) - scene.body.nodes
    for name in ("s.obj", "s.ply"):
        write_surface(tmp_path / name, scene.body, u)
        shape = pl.load_shape(tmp_path / name)
        assert shape.volume() == pytest.approx(0.25, rel=1e-6)  # a shear keeps the volume
    write_frame(tmp_path / "f.vtu", scene.body, u, u)
    write_index(tmp_path / "t.pvd", [(0.0, "f.vtu")])
    assert 'file="f.vtu"' in (tmp_path / "t.pvd").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "a.gif", "a.png", "f.vtu", "s.obj", "s.ply", "t.pvd",
    ]  # fmt: skip


def test_hexahedra_have_the_right_way_round(scene, tmp_path):
    """VTK's corner order: positive volume by the scalar triple product at the first corner."""
    import meshio

    write_frame(tmp_path / "f.vtu", scene.body, 0.0 * scene.body.nodes)
    mesh = meshio.read(tmp_path / "f.vtu")
    corner = mesh.points[mesh.cells[0].data]
    a, b, c = (corner[:, k] - corner[:, 0] for k in (1, 3, 4))
    assert np.einsum("ci,ci->c", a, np.cross(b, c)) == pytest.approx(0.25**3)
    assert np.allclose(corner[:, 6] - corner[:, 0], a + b + c)
