"""Depth views fused to a shape: a ball and a bunny, noise, a table, and what cannot be fused."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from pliant.fem.cutting.triangulate import sampled_surface
from pliant.geometry.mesh_shape import MeshShape
from pliant.observe.depth_views import depth_view
from pliant.observe.observations import Frame, Observations
from pliant.observe.raycast import SurfaceQueries

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))
from command_line import in_process  # noqa: E402

DATA = Path(os.environ.get("PLIANT_DATA", Path(__file__).parents[3] / "shared" / "data"))
NOISE = 5e-4


def all_around(centre, count, distance, pixels, angle=26.0):
    """Cameras spread evenly over a sphere (a golden spiral)."""
    k = np.arange(count) + 0.5
    y, turn = 1.0 - 2.0 * k / count, np.pi * (1.0 + 5.0**0.5) * k
    r = np.sqrt(1.0 - y * y)
    where = np.stack([r * np.cos(turn), y, r * np.sin(turn)], axis=1)
    return [
        pl.Camera.looking(
            centre + distance * x, centre, width=pixels, height=pixels, view_angle=angle
        )
        for x in where
    ]


def filmed(vertices, faces, cameras, noise=NOISE, seed=3):
    """One frame of each camera, noise along the rays."""
    queries, rng, frames = SurfaceQueries(vertices, faces), np.random.default_rng(seed), []
    for k, camera in enumerate(cameras):
        rays = camera.rays()
        hits = queries.cast(camera.position, rays)
        depth = hits.distance + noise * rng.standard_normal(len(hits.item))
        points = camera.position + depth[:, None] * rays[hits.item]
        frames.append(Frame(0.1 * k, points, np.full(len(depth), k), hits.item, depth))
    return Observations(frames, cameras, noise or None)


def ball(radius=0.05, center=(0.01, 0.02, 0.0)):
    return sampled_surface(pl.shapes.sphere(radius=radius, center=center), 0.0025)


def is_closed(facets):
    edges = np.sort(facets[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    return (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()


@pytest.fixture(scope="module")
def seen_ball():
    return filmed(*ball(), all_around(np.array([0.01, 0.02, 0.0]), 14, 0.35, 90))


@pytest.fixture(scope="module")
def scanned_ball(seen_ball):
    return pl.fuse(seen_ball, spacing=0.003)


def test_the_tilt_of_a_plane():
    """A plane at 40 degrees to the axis: the cosine at the image's middle, noise or not."""
    camera = pl.Camera.looking((0, 0, 1), (0, 0, 0), width=61, height=61, view_angle=20.0)
    n = np.array([0.0, np.sin(np.radians(40.0)), np.cos(np.radians(40.0))])
    depth = (-(camera.position @ n) / (camera.rays() @ n)).reshape(61, 61)
    exact = np.abs(camera.rays() @ n).reshape(61, 61)
    view = depth_view(camera, depth, spacing=0.003, noise=0.0)
    assert view.cosine[5:-5, 5:-5] == pytest.approx(exact[5:-5, 5:-5], abs=0.01)
    assert view.depth[5:-5, 5:-5] == pytest.approx(depth[5:-5, 5:-5], abs=2e-5)
    assert not view.empty.any()


def test_a_ball(scanned_ball):
    scan = scanned_ball
    points, facets = sampled_surface(scan.shape, 0.003)
    error = np.linalg.norm(points - [0.01, 0.02, 0.0], axis=1) - 0.05
    assert np.sqrt(np.mean(error**2)) < 2e-4  # of noise of 5e-4
    assert abs(error.mean()) < 0.05 * 0.003  # a twentieth of a cell
    assert is_closed(facets)
    assert scan.shape.volume() == pytest.approx(4 / 3 * np.pi * 0.05**3, rel=0.01)
    near = np.abs(scan.shape.values) < 0.009
    slope = np.linalg.norm(scan.shape.gradient(scan.shape.nodes()[near.ravel()]), axis=1)
    assert np.median(np.abs(slope - 1.0)) < 0.03  # a distance
    assert scan.seen > 0.99
    assert scan.overlap > 0.9
    assert scan.disagreement < NOISE
    assert scan.advice == ()


def test_the_same_bits_again(seen_ball, scanned_ball):
    assert (pl.fuse(seen_ball, spacing=0.003).shape.values == scanned_ball.shape.values).all()


def test_a_saved_scan_is_a_shape(scanned_ball, tmp_path):
    scanned_ball.save(tmp_path / "ball.npz")
    shape = pl.load_shape(tmp_path / "ball.npz")
    assert shape.distance([[0.01, 0.02, 0.0]])[0] == pytest.approx(-0.05, abs=3e-3)  # within a cell
    assert pl.GridBody(shape, 0.015).volume == pytest.approx(4 / 3 * np.pi * 0.05**3, rel=0.02)


def test_lost_and_wild_pixels(seen_ball):
    """3 % lost, 2 % wild: the same ball."""
    rng = np.random.default_rng(2)
    frames = []
    for f in seen_ball.frames:
        keep = rng.random(len(f)) > 0.03
        wild = rng.random(len(f)) < 0.02
        depth = np.where(wild, f.depth * rng.uniform(0.8, 1.2, len(f)), f.depth)
        camera = seen_ball.cameras[f.camera[0]]
        points = camera.position + depth[:, None] * camera.rays(f.pixel)
        frames.append(Frame(f.time, points[keep], f.camera[keep], f.pixel[keep], depth[keep]))
    scan = pl.fuse(replace(seen_ball, frames=frames), spacing=0.003)
    points, facets = sampled_surface(scan.shape, 0.003)
    error = np.linalg.norm(points - [0.01, 0.02, 0.0], axis=1) - 0.05
    assert np.sqrt(np.mean(error**2)) < 5e-4
    assert is_closed(facets)


def test_a_table_is_removed():
    """A ball cut by a table at y = 0: what is above stays, closed, half a cell off the table."""
    points, facets = ball(center=(0.0, 0.03, 0.0))
    t = 0.12
    corners = np.array([[-t, 0, -t], [t, 0, -t], [t, 0, t], [-t, 0, t]])
    both = np.concatenate([points, corners])
    sides = np.concatenate([facets, len(points) + np.array([[0, 2, 1], [0, 3, 2]])])
    cameras = [c for c in all_around(np.array([0.0, 0.03, 0.0]), 24, 0.5, 90, 30.0)
               if c.position[1] > 0.1]  # fmt: skip
    seen = filmed(both, sides, cameras)
    scan = pl.fuse(seen, spacing=0.004, table=True)
    normal, offset = scan.table
    assert normal == pytest.approx([0, 1, 0], abs=5e-3)
    assert offset == pytest.approx(0.0, abs=2e-4)
    found, own = sampled_surface(scan.shape, 0.004)
    assert is_closed(own)
    assert 0.0 < found[:, 1].min() < 0.004
    upper = found[found[:, 1] > 0.012]
    error = np.linalg.norm(upper - [0, 0.03, 0], axis=1) - 0.05
    assert np.sqrt(np.mean(error**2)) < 4e-4
    given = pl.fuse(seen, spacing=0.004, table=((0, 2, 0), 0.0))
    assert given.shape.volume() == pytest.approx(scan.shape.volume(), rel=0.01)


def test_one_side_is_closed_and_told(seen_ball):
    few = replace(seen_ball, frames=seen_ball.frames[:3])
    scan = pl.fuse(few, spacing=0.004)
    assert scan.seen < 0.9
    assert any("seen by no view" in line for line in scan.advice)
    assert is_closed(sampled_surface(scan.shape, 0.004)[1])


def test_wrong_poses_are_told(seen_ball):
    moved = [
        replace(c, position=c.position + 0.004 * (-1) ** k * np.array([1.0, 0.0, 0.0]))
        for k, c in enumerate(seen_ball.cameras)
    ]
    scan = pl.fuse(replace(seen_ball, cameras=moved), spacing=0.003)
    assert any("poses may be off" in line for line in scan.advice)


def test_what_cannot_be_fused(seen_ball):
    with pytest.raises(pl.BadInput, match="no depth with known cameras"):
        pl.fuse(Observations([], []))
    blind = [
        Frame(f.time, f.points, np.full(len(f), -1), f.pixel, f.depth) for f in seen_ball.frames
    ]
    with pytest.raises(pl.BadInput, match="points without camera and pixel"):
        pl.fuse(replace(seen_ball, frames=blind))
    with pytest.raises(pl.BadInput, match=r"nodes for a body of 0.1.* use .* mm or more"):
        pl.fuse(seen_ball, spacing=1e-5)
    with pytest.raises(pl.BadInput, match="must be positive"):
        pl.fuse(seen_ball, spacing=-1.0)
    with pytest.raises(pl.BadInput, match="No table was found"):
        pl.fuse(seen_ball, spacing=0.004, table=True)
    with pytest.raises(pl.BadInput, match="turn its normal round"):
        pl.fuse(seen_ball, spacing=0.004, table=((0, 1, 0), 1.0))
    opposite = [seen_ball.frames[0], seen_ball.frames[-1]]  # above and below
    with pytest.raises(pl.BadInput, match="do not overlap"):
        pl.fuse(replace(seen_ball, frames=opposite), spacing=0.003)


@pytest.mark.parametrize("layout", ["npz", "depth"])
def test_the_command(seen_ball, tmp_path, capfd, monkeypatch, layout):
    folder = tmp_path / "seen"
    pl.save_observations(seen_ball, folder, layout, depth_scale=20_000.0)
    out = tmp_path / "ball.npz"
    code, text, _ = in_process(
        capfd, monkeypatch, "scan", folder, "--out", out, "--spacing", 0.004, "--json"
    )
    assert code == 0
    result = json.loads(text)
    assert result["views"] == 14
    assert result["volume"] == pytest.approx(4 / 3 * np.pi * 0.05**3, rel=0.02)
    assert pl.load_shape(out).distance([[0.01, 0.02, 0.0]])[0] < -0.045
    assert out.with_suffix(".png").stat().st_size > 10_000
    code, _, said = in_process(capfd, monkeypatch, "scan", folder, "--out", out)
    assert (code, "exists already" in said) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "there is no such folder"),
        (["{0}", "--out", "{0}/a.ply"], "change the ending"),
        (["{0}", "--out", "{0}/a.npz", "--table", "up"], "four numbers"),
        (["{0}", "--out", "{0}/a.npz"], "holds no frames"),
    ],
)
def test_the_command_refuses(tmp_path, capfd, monkeypatch, arguments, words):
    arguments = [a.format(tmp_path) for a in arguments]
    code, out, said = in_process(capfd, monkeypatch, "scan", *arguments)
    assert (code, out) == (2, "")
    assert words in said
    assert len(said.splitlines()) == 1


def test_the_bunny():
    """20 frames with 0.5 mm of noise, a bunny of 10 cm: 0.2 mm rms where seen, watertight."""
    path = DATA / "bunny.ply"
    if not path.is_file():
        pytest.skip(f"REAL DATA MISSING: no {path} (set PLIANT_DATA)")
    mesh = pl.load_shape(path)
    vertices = (mesh.vertices - mesh.vertices.mean(axis=0)) * 0.1 / np.ptp(mesh.vertices, 0).max()
    centre = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    seen = filmed(vertices, mesh.faces, all_around(centre, 20, 0.35, 160))
    scan = pl.fuse(seen, spacing=0.002)
    points, facets = sampled_surface(scan.shape, 0.002)
    where = scan.seen_at(points)
    error = MeshShape(vertices, mesh.faces).distance(points[where])
    assert np.sqrt(np.mean(error**2)) < 2e-4
    assert abs(error.mean()) < 1e-4
    assert where.mean() > 0.98
    assert is_closed(facets)
