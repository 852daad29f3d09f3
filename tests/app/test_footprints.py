"""What covers a block of the picture, against Warp's own ray queries and against a ball."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.app.pictures.picture import Camera, Studio
from pliant.app.render.field_painter import cells_inside
from pliant.app.render.footprints import (
    ball_stretches,
    camera_projection,
    lamp_projection,
    triangle_rows,
)
from pliant.core.launch import set_threads, thread_count, to_device


@wp.kernel
def first_hits(
    mesh: wp.uint64,
    starts: wp.array(dtype=wp.vec3f),
    directions: wp.array(dtype=wp.vec3f),
    out: wp.array(dtype=wp.vec2f),
):
    i = wp.tid()
    query = wp.mesh_query_ray(mesh, starts[i], directions[i], 1.0e6)
    out[i] = wp.vec2f(-1.0, -1.0)
    if query.result:
        out[i] = wp.vec2f(query.t, float(query.face))


def hits(points, facets, starts, directions):
    """(t, face) of Warp's tree of boxes; -1 where nothing is met."""
    mesh = wp.Mesh(to_device(points, wp.vec3f), to_device(facets.reshape(-1), wp.int32))
    out = wp.zeros(len(starts), dtype=wp.vec2f)
    inputs = [to_device(a, wp.vec3f) for a in (starts, directions)]
    wp.launch(first_hits, dim=len(starts), inputs=[mesh.id, *inputs, out], device="cpu")
    return out.numpy()


def listed(projection, rows, lists, place):
    """(value, face) of the largest value at places (n, 2), by the lists; 0 where there is none."""
    rows, start, things = rows.numpy(), lists.start.numpy(), lists.things.numpy()
    cell = np.floor((place - np.array(projection.low)) / np.array(projection.block)).astype(int)
    found = np.full((len(place), 2), [-np.inf, -1.0])
    for n, (i, j) in enumerate(cell):
        if not (0 <= i < projection.count[0] and 0 <= j < projection.count[1]):
            continue
        block = j * projection.count[0] + i
        for face in things[start[block] : start[block + 1]]:
            u, v, w, value = rows[face] @ [*place[n], 1.0]
            if min(u, v, w) >= 0.0 and value > found[n, 0]:
                found[n] = value, face
    return found


@pytest.fixture(scope="module")
def studio():
    scene = pl.Scene(pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.12))
    return Studio(scene, [scene.body.nodes], width=160, height=120)


@pytest.fixture(scope="module")
def mesh(studio):
    surface = studio.scene.body.surface
    points = surface.positions(studio.scene.body.nodes).astype(np.float32)
    # one large triangle that passes beside the eye and ends behind it
    eye, (right, up, forward) = studio.camera.eye, studio.camera.axes()
    large = eye + np.array([4 * forward + right, -2 * forward + 0.1 * up, 5 * forward + 3 * up])
    facets = np.concatenate([surface.facets, len(points) + np.array([[0, 1, 2]])])
    return np.concatenate([points, large]).astype(np.float32), facets.astype(np.int32)


def test_camera_rays_meet_what_a_tree_of_boxes_finds(studio, mesh):
    points, facets = mesh
    view = studio.setting.view
    projection = camera_projection(view)
    flat = to_device(facets.reshape(-1), wp.int32)
    rows, lists = triangle_rows(projection, to_device(points, wp.vec3f), flat)
    rng = np.random.default_rng(3)
    place = rng.uniform(-1.0, 1.0, (3000, 2)) * [view.half_width, view.half_height]
    right, up, forward = studio.camera.axes()
    directions = (forward + place[:, :1] * right + place[:, 1:] * up).astype(np.float32)
    truth = hits(points, facets, np.tile(studio.camera.eye, (3000, 1)), directions)
    found = listed(projection, rows, lists, place)
    met = truth[:, 1] >= 0
    assert 0.2 < met.mean() < 0.9
    assert (truth[:, 1] == len(facets) - 1).any()  # the large one is seen
    assert np.array_equal(met, found[:, 1] >= 0)
    assert 1.0 / found[met, 0] == pytest.approx(truth[met, 0], rel=1e-5)
    assert (found[met, 1] == truth[met, 1]).mean() > 0.999  # on an edge either side will do


def test_shadow_rays_meet_what_a_tree_of_boxes_finds(studio, mesh):
    points, facets = (mesh[0][:-3], mesh[1][:-1])
    stage = studio.setting.stage
    light = np.array(stage.light, float)
    projection = lamp_projection(stage, points)
    flat = to_device(facets.reshape(-1), wp.int32)
    rows, lists = triangle_rows(projection, to_device(points, wp.vec3f), flat)
    rng = np.random.default_rng(4)
    floor = np.array(stage.middle) + rng.uniform(-1.6, 1.6, (3000, 3)) * [1.0, 0.0, 1.0]
    truth = hits(points, facets, floor + 20.0 * light, np.tile(-light, (3000, 1)))
    from_middle = floor - np.array(stage.middle)
    place = np.stack([from_middle @ np.array(a) for a in (projection.right, projection.up)], axis=1)
    found = listed(projection, rows, lists, place)
    met = truth[:, 1] >= 0
    assert 0.1 < met.mean() < 0.9
    assert np.mean(met == (found[:, 1] >= 0)) > 0.999
    both = met & (found[:, 1] >= 0)
    height = from_middle @ light + 20.0 - truth[:, 0]
    assert found[both, 0] == pytest.approx(height[both], abs=2e-5)


def test_stretches_hold_where_a_ball_is_met(studio):
    """|eye + t d| = 1 has t = -b -+ sqrt(b^2 - c): both lie in the block's stretch."""
    h, view = 0.1, studio.setting.view
    nodes = np.stack(np.meshgrid(*[np.arange(-1.3, 1.31, h)] * 3, indexing="ij"), axis=-1)
    cells, crossed = cells_inside(np.linalg.norm(nodes, axis=-1) < 1.0)
    centres = nodes[0, 0, 0] + h * (cells[crossed] + 0.5)
    projection = camera_projection(view, 6)
    radius = 0.5 * h * np.sqrt(3.0)
    parts = ball_stretches(projection, to_device(centres, wp.vec3f), radius).numpy()
    rng = np.random.default_rng(5)
    place = rng.uniform(-1.0, 1.0, (4000, 2)) * [view.half_width, view.half_height]
    right, up, forward = studio.camera.axes()
    d = forward + place[:, :1] * right + place[:, 1:] * up
    d /= np.linalg.norm(d, axis=1)[:, None]
    eye = studio.camera.eye
    b, c = d @ eye, eye @ eye - 1.0
    square = b**2 - c
    cell = ((place - np.array(projection.low)) / np.array(projection.block)).astype(int)
    near, far = parts[cell[:, 1] * projection.count[0] + cell[:, 0]].T
    met = square > 0.0
    assert 0.1 < met.mean() < 0.9
    root = np.sqrt(square[met])
    assert (near[met] <= -b[met] - root + 1e-5).all()
    assert (far[met] >= -b[met] + root - 1e-5).all()
    # a ray that passes by more than the cells' and a block's breadth away finds nothing
    breadth = 2.0 * np.sqrt(3.0) * h + np.linalg.norm(projection.block) * np.linalg.norm(eye)
    away = 1.0 - square > (1.0 + breadth) ** 2  # the distance of the ray from the middle, squared
    assert away.any()
    assert (far < near)[away].all()


def test_pictures_do_not_depend_on_threads(studio):
    before, found = thread_count(), []
    nodes = studio.scene.body.nodes * [1.0, 0.9, 1.1]
    try:
        for count in (1, 2):
            set_threads(count)
            for style in ("surface", "field"):
                look = {"width": 320, "height": 240, "style": style, "samples": 2}
                found.append(Studio(studio.scene, [nodes], **look).picture(nodes))
    finally:
        set_threads(before)
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[1], found[3])


def test_a_camera_inside_sees_walls_only(studio):
    """From the tube's middle every ray ends at the tube: no sky, no floor."""
    scene = studio.scene
    camera = Camera(np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0]))
    picture = Studio(scene, [scene.body.nodes], width=80, height=60, camera=camera)
    image = picture.picture(scene.body.nodes).astype(int)
    assert image.max() < 200  # the sky is brighter


@pytest.mark.parametrize("style", ["surface", "field", "slice"])
def test_what_is_kept_of_the_empty_stage_is_what_would_be_drawn(studio, style):
    """Blocks that a frame leaves alone hold floor and sky as the frame's own rays see them."""
    scene = studio.scene
    nodes = scene.body.nodes * [1.0, 0.8, 1.1]
    drawing = Studio(scene, [nodes], width=320, height=240, style=style, samples=2)
    kept = drawing.picture(nodes).astype(int)
    empty = drawing.setting.empty
    share_touched = []

    def all_touched(touched, eye, samples, known=empty.unchanged):
        found = known(touched, eye, samples)
        share_touched.append(found.touched.mean())
        found.touched[:] = True
        return found

    empty.unchanged = all_touched
    whole = drawing.picture(nodes).astype(int)
    assert 0.1 < share_touched[0] < 0.95
    difference = np.abs(kept - whole).max(axis=2)
    # beside a block, a pixel of the floor may have had one ray instead of four
    assert difference.max() <= 12
    assert (difference > 1).mean() < 1e-3
