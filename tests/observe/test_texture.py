"""Colours of a moving body: exact where they are even, finer than a pixel, blind to a hand."""

import numpy as np
import pytest

import pliant as pl
from pliant.observe.colour_files import colour_files, read_colour_image, write_colour_png
from pliant.observe.colour_film import film_colours, stripes
from pliant.observe.texture import ColourView, fuse_colours, painted_surface


@pytest.fixture(scope="module")
def swing():
    """A ring that swings for 24 steps, three cameras of 40 x 40 pixels, the width of a pixel."""
    body = pl.GridBody(pl.shapes.torus(major=0.1, minor=0.035), 0.0175)
    held = pl.Fixed(pl.shapes.box(center=(0, 0.135, 0), size=(0.2, 0.04, 0.1)))
    scene = pl.Scene(body, pl.Material(2e4, 0.4, 1000.0), fixed=[held],
                     integrator=pl.GeneralisedAlpha(0.01))  # fmt: skip
    run = pl.simulate(scene, 24)
    cameras = pl.ring_of_cameras(scene, 3, width=40, height=40)
    width = float(np.linalg.norm(cameras[0].position)) / cameras[0].fx
    return run, cameras, width


def fused(swing, paint, frames, *, spoil=None, noise=0.0):
    run, cameras, width = swing
    images = film_colours(run, cameras, paint, frames=frames, noise=noise)
    if spoil is not None:
        spoil(images)
    nodes = run.scene.body.nodes
    views = [
        ColourView(camera, image, nodes + run.displacements[k])
        for k, own in zip(frames, images, strict=True)
        for camera, image in zip(cameras, own, strict=True)
    ]
    surface = painted_surface(run.scene.body, width)
    return surface.positions(nodes), fuse_colours(surface, views)


def test_an_even_colour_comes_back(swing):
    colour = np.array([0.2, 0.5, 0.7])
    _, found = fused(swing, lambda x: np.broadcast_to(colour, x.shape), [1, 6])
    assert found.colours == pytest.approx(np.broadcast_to(colour, found.colours.shape), abs=1e-5)
    assert found.noise < 1e-6


def test_many_frames_know_what_is_finer_than_a_pixel(swing):
    """Periods of 1.6 pixels: one image cannot tell them from others (it needs two pixels)."""
    paint = stripes(0.8 * swing[2])

    def error(frames):
        points, found = fused(swing, paint, frames)
        well = found.seen > 0.2 * np.median(found.seen[found.seen > 0.0])
        return np.sqrt(np.mean((found.colours - paint(points))[well] ** 2))

    one, all_of_them = error([6]), error(range(1, 25))
    flat = 0.4 / np.sqrt(2.0)  # of a colour that is the mean everywhere
    assert one > 0.7 * flat
    assert all_of_them < 0.5 * flat


def test_a_hand_before_the_body_leaves_no_trace(swing):
    colour = np.array([0.2, 0.5, 0.7])

    def hand(images):
        images[4][0][:, 10:20] = (0.9, 0.6, 0.5)

    _, found = fused(swing, lambda x: np.broadcast_to(colour, x.shape), range(1, 9), spoil=hand,
                     noise=0.01)  # fmt: skip
    well = found.seen > np.median(found.seen[found.seen > 0.0])
    assert np.abs(found.colours[well] - colour).max() < 0.05


def test_cameras_that_see_nothing_are_told(swing):
    run, cameras, width = swing
    away = pl.Camera.looking((5.0, 0.0, 0.0), (10.0, 0.0, 0.0), width=8, height=8)
    view = ColourView(away, np.zeros((8, 8, 3)), run.scene.body.nodes)
    with pytest.raises(pl.BadInput, match="No image sees the body"):
        fuse_colours(painted_surface(run.scene.body, width), [view])


def test_images_come_in_the_order_of_their_frames(tmp_path, swing):
    _, cameras, _ = swing
    for number in (0, 1):
        for k in (9, 10):
            path = tmp_path / "color" / f"camera_{number:02d}" / f"frame_{k}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_colour_png(path, np.full((40, 40, 3), 0.1 * number + 0.02 * k))
    found = colour_files(tmp_path, cameras=2, frames=2)
    assert [[(i, p.stem) for i, p in frame] for frame in found] == [
        [(0, "frame_9"), (1, "frame_9")], [(0, "frame_10"), (1, "frame_10")],
    ]  # fmt: skip
    image = read_colour_image(found[1][1][1], cameras[1])
    assert image == pytest.approx(np.full((40, 40, 3), 0.3), abs=0.5 / 255)
    with pytest.raises(pl.BadInput, match="2 images of camera 0; the recording has 3 frames"):
        colour_files(tmp_path, cameras=2, frames=3)
    with pytest.raises(pl.BadInput, match="images of 2 cameras; the recording has 3"):
        colour_files(tmp_path, cameras=3, frames=2)
    with pytest.raises(pl.BadInput, match="no colour images"):
        colour_files(tmp_path / "color", cameras=1, frames=2)
    small = pl.Camera.looking((1, 0, 0), (0, 0, 0), width=20, height=20)
    with pytest.raises(pl.BadInput, match="40 x 40 pixels, its camera 20 x 20"):
        read_colour_image(found[0][0][1], small)
