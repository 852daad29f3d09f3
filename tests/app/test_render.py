"""The renderer: areas, colours and files whose numbers are known beforehand."""

import numpy as np
import pytest

import pliant as pl
from pliant.app.pictures.picture import Camera, Cut, Studio, render, save_mp4
from pliant.app.render.camera import OPENING
from pliant.app.render.colouring import Colouring
from pliant.app.render.pixels import _table, linear
from pliant.app.render.transfer import TransferFunction, distance_colours
from pliant.core.launch import set_threads, thread_count
from pliant.fem.bodies.render_mesh import carried_mesh

SIZE, AWAY = 160, 8.0
CAMERA = Camera(np.array([0.0, 0.0, AWAY]), np.zeros(3))


@pytest.fixture(scope="module")
def ball():
    """A ball of radius 1, far above its floor."""
    return pl.Scene(
        pl.GridBody(pl.shapes.sphere(radius=1.0), 0.1), obstacles=[pl.Plane(offset=-50.0)]
    )


def coloured(image, threshold=40):
    """Pixels of the body: floor, sky and shadows are nearly grey."""
    spread = image.astype(int).max(axis=2) - image.astype(int).min(axis=2)
    return spread > threshold


def disc(radius, distance):
    """Pixels of a disc of radius r facing the camera at a distance."""
    return np.pi * (radius / distance / OPENING * SIZE / 2.0) ** 2


@pytest.mark.parametrize("style", ["surface", "field"])
def test_a_ball_has_the_area_of_its_silhouette(ball, style):
    """The cone that touches the ball has the angle asin(R / d)."""
    shift = np.array([0.2, -0.1, 0.0])  # moved by a fraction of a cell and more
    image = render(
        ball, ball.body.nodes + shift, width=SIZE, height=SIZE, camera=CAMERA, style=style
    )
    seen = coloured(image).sum()
    assert seen == pytest.approx(disc(np.tan(np.arcsin(1.0 / AWAY)), 1.0), rel=0.03)
    rows, columns = np.nonzero(coloured(image))
    pixel = 2.0 * OPENING * AWAY / SIZE
    assert (columns.mean() + 0.5 - SIZE / 2) * pixel == pytest.approx(0.2, abs=pixel)
    assert (SIZE / 2 - rows.mean() - 0.5) * pixel == pytest.approx(-0.1, abs=pixel)


@pytest.mark.parametrize(("axis", "at"), [("z", 0.6), ("camera", 0.6)])
def test_a_slice_shows_its_section(ball, axis, at):
    """At height 0.6 a ball's section has the radius 0.8."""
    red = TransferFunction(
        np.array([-2.0, -1e-6, 1e-6, 2.0]), np.array([[1, 0, 0, 1.0]] * 2 + [[1, 1, 1, 0.0]] * 2)
    )
    image = render(
        ball, ball.body.nodes, width=SIZE, height=SIZE, camera=CAMERA, style="slice",
        cut=Cut(axis, at=at, transfer=red),
    )  # fmt: skip
    pure = (image[..., 0] > 200) & (image[..., 1] < 60) & (image[..., 2] < 60)
    assert pure.sum() == pytest.approx(disc(0.8, AWAY - 0.6), rel=0.03)


def test_colours_of_a_known_stretch(ball):
    """F = diag(1 + e, 1, 1): strain 2/3 e, von Mises stress 2 mu e, displacement e |x|."""
    body, e = ball.body, 0.03
    u = np.zeros_like(body.nodes)
    u[:, 0] = e * body.nodes[:, 0]
    mu = ball.material.lame(1)[1][0]
    assert np.allclose(Colouring(ball, "strain").at_nodes(u), 2.0 / 3.0 * e)
    assert np.allclose(Colouring(ball, "stress").at_nodes(u), 2.0 * mu * e)
    assert np.allclose(Colouring(ball).at_nodes(u), e * np.abs(body.nodes[:, 0]))
    observed = body.surface.positions(body.nodes)
    far = Colouring(ball, "observation").at_points(
        body.surface.points, np.zeros_like(u), observed + [0.0, 0.0, 1e-3]
    )
    assert far.max() <= 1e-3 + 1e-12
    with pytest.raises(pl.BadInput, match="observed points"):
        Colouring(ball, "observation").at_nodes(u)


def test_a_slice_takes_its_scale_from_what_it_shows(ball):
    """F = diag(1 + e, 1, 1): stress 2 mu e, a hundred times as much in a core below the surface."""
    body, e = ball.body, 0.03
    u = np.zeros_like(body.nodes)
    u[:, 0] = e * body.nodes[:, 0]
    core = np.linalg.norm(body.nodes[body.cells].mean(axis=1), axis=1) < 0.45
    scene = pl.Scene(body, material=pl.Material(np.where(core, 1e5, 1e3), 0.3, 1.0))
    mu = 1e5 / 2.6
    look = {"width": SIZE, "height": SIZE, "camera": CAMERA, "style": "slice", "colour": "stress"}
    at = {
        z: Studio(scene, [body.nodes + u], cut=Cut("z", at=z, values=True), **look).scale.largest
        for z in (0.0, 0.7)
    }
    assert at[0.0] == pytest.approx(2.0 * mu * e)
    assert at[0.7] == pytest.approx(0.01 * 2.0 * mu * e)  # beside the core
    away = Studio(scene, [body.nodes + u], cut=Cut("z", at=5.0, values=True), **look)
    assert away.scale.largest == pytest.approx(0.01 * 2.0 * mu * e)  # nothing cut: the surface


def test_a_slice_of_values_has_no_halo(ball):
    """Coloured pixels are those of the section, a disc of radius 1."""
    moved = ball.body.nodes * 1.0 + [0.0, 0.0, 0.3]
    image = render(
        ball, moved, width=SIZE, height=SIZE, camera=CAMERA, style="slice",
        cut=Cut("z", at=0.3, values=True),
    )  # fmt: skip
    assert coloured(image).sum() == pytest.approx(disc(1.0, AWAY - 0.3), rel=0.03)


def test_scales_say_their_units(ball):
    scale = Colouring(ball, "stress").scale([np.array([0.0, 2.5e6])])
    assert scale.label.endswith("MPa")
    assert Colouring(ball).scale([np.zeros(3)]).largest == 1.0
    assert Colouring(ball).scale([np.array([0.0, 6.02e-3])]).label == "6.02 mm"


def test_field_pictures_do_not_depend_on_threads(ball):
    before = thread_count()
    found = []
    try:
        for count in (1, 2):
            set_threads(count)
            found.append(
                render(ball, 1.2 * ball.body.nodes, width=96, height=96, style="slice",
                       colour="strain", cut=Cut("x", values=True))
            )  # fmt: skip
    finally:
        set_threads(before)
    assert np.array_equal(*found)


def test_a_render_mesh_is_drawn_instead(ball):
    """A tetrahedron of half the ball's size, carried by it: its own silhouette, a triangle."""
    h = 0.5
    corner = np.array([[h, h, 0.0], [-h, h, 0.0], [0.0, -h, 0.0], [0.0, 0.0, -h]])
    faces = np.array([[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]])
    mesh = carried_mesh(ball.body, corner, faces)
    image = render(ball, ball.body.nodes, width=SIZE, height=SIZE, camera=CAMERA, mesh=mesh)
    pixel = 2.0 * OPENING * AWAY / SIZE
    assert coloured(image).sum() == pytest.approx(0.5 * (2 * h) ** 2 / pixel**2, rel=0.08)


def test_tetrahedra_are_traced_too():
    """On a lattice over them; a cell or two of the sharp tips are blurred away."""
    nodes = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], float)
    body = pl.TetBody((nodes, np.array([[0, 1, 2, 3], [1, 2, 3, 4]])))
    scene = pl.Scene(body, obstacles=[pl.Plane(offset=-50.0)])
    camera = Camera(np.array([0.4, 0.4, 7.0]), np.array([0.4, 0.4, 0.0]))
    look = {"width": SIZE, "height": SIZE, "camera": camera}
    triangles = coloured(render(scene, body.nodes, **look))
    studio = Studio(scene, [body.nodes], style="field", spacing=0.035, **look)
    field = coloured(studio.picture(body.nodes))
    both, either = (triangles & field).sum(), (triangles | field).sum()
    assert both / either > 0.9


def test_obstacles_hide_the_field(ball):
    wall = pl.Obstacle(pl.shapes.box(size=(4.0, 4.0, 0.2), center=(0.0, 0.0, 3.0)), spacing=0.2)
    hidden = pl.Scene(ball.body, obstacles=[wall])
    image = render(hidden, ball.body.nodes, width=SIZE, height=SIZE, camera=CAMERA, style="field")
    assert not coloured(image).any()


def test_encoding_is_srgb():
    x = np.arange(256) / 255.0
    back = _table()[(linear(x) * (len(_table()) - 1) + 0.5).astype(int)]
    assert np.abs(back.astype(int) - np.arange(256)).max() <= 1


def test_transfer_functions():
    t = distance_colours(0.1, 0.5)
    inside, outside = t.at(np.array([-0.33, 2.0]))
    assert inside[3] == 1.0
    assert outside[3] == 0.0
    assert t.table().shape == (1024,)
    with pytest.raises(pl.BadInput, match="ascending"):
        TransferFunction(np.array([1.0, 0.0]), np.zeros((2, 4)))
    with pytest.raises(pl.BadInput, match="x, y, z, camera"):
        Cut("w")


def test_a_film_is_written(ball, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    frames = [np.full((49, 65, 3), 60 * k, np.uint8) for k in range(4)]
    save_mp4(tmp_path / "a.mp4", iter(frames), seconds=0.1)
    reader = ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    about = next(reader)
    assert tuple(about["size"]) == (64, 48)
    assert about["fps"] == pytest.approx(10.0)
    read = [np.frombuffer(f, np.uint8).mean() for f in reader]
    assert len(read) == 4
    assert np.allclose(read, [0, 60, 120, 180], atol=4)
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]
    with pytest.raises(pl.BadInput, match="at least one frame"):
        save_mp4(tmp_path / "b.mp4", iter([]))
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]


def test_styles_are_checked(ball):
    with pytest.raises(pl.BadInput, match="surface, field, slice"):
        Studio(ball, [ball.body.nodes], style="cubist")
    with pytest.raises(pl.BadInput, match="displacement, strain"):
        Studio(ball, [ball.body.nodes], colour="mood")
