"""Recordings on disk: ours come back as they were, foreign ones work."""

import json
import logging
import struct

import numpy as np
import pytest
from PIL import Image

import pliant as pl
from pliant.observe.camera import Camera
from pliant.observe.crop import crop_to_body
from pliant.observe.depth_png import camera_record, read_cameras
from pliant.observe.files import load_observations, save_observations
from pliant.observe.observations import Frame, Observations
from recordings import CAMERAS, frame, ply_text


def block(**changes):
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.25, 0.25), size=(1.0, 0.5, 0.5)), spacing=0.25)
    return pl.Scene(body, **changes)


# --- round trips


def test_npz_is_exact(seen, tmp_path, caplog):
    save_observations(seen, tmp_path)
    with caplog.at_level(logging.INFO):
        back = load_observations(tmp_path)
    assert caplog.text == ""
    assert back.noise == seen.noise
    for a, b in zip(seen.frames, back.frames, strict=True):
        assert a.time == b.time
        for name in ("points", "camera", "pixel", "depth"):
            assert np.array_equal(getattr(a, name), getattr(b, name))
    for a, b in zip(seen.cameras, back.cameras, strict=True):
        assert (a.width, a.height, a.fx, a.fy, a.cx, a.cy) == (
            b.width, b.height, b.fx, b.fy, b.cx, b.cy,
        )  # fmt: skip
        assert np.abs(a.position - b.position).max() < 1e-14
        assert np.abs(a.rotation - b.rotation).max() < 1e-15


def test_ply_keeps_points_and_times(seen, tmp_path):
    save_observations(seen, tmp_path, "ply")
    back = load_observations(tmp_path)
    assert [f.time for f in back.frames] == [f.time for f in seen.frames]
    for a, b in zip(seen.frames, back.frames, strict=True):
        assert np.array_equal(a.points, b.points)
        assert not b.organised


def test_depth_images_hold_z_in_millimetres(seen, tmp_path):
    save_observations(seen, tmp_path, "depth")
    image = np.asarray(Image.open(tmp_path / "depth" / "camera_00" / "00000.png"))
    assert image.shape == (9, 12)
    first = seen.frames[0]
    c = CAMERAS[0]
    # the camera's axis is the third row of its rotation: z is the point's coordinate along it
    z = (first.points[0] - c.position) @ c.rotation[2]
    assert image.reshape(-1)[first.pixel[0]] == round(1000.0 * z)
    back = load_observations(tmp_path)
    for a, b in zip(seen.frames, back.frames, strict=True):
        assert np.array_equal(a.camera, b.camera)
        assert np.array_equal(a.pixel, b.pixel)
        # half a millimetre along the axis, a little more along the ray
        assert np.abs(a.depth - b.depth).max() < 0.5e-3 / 0.8
        assert np.abs(a.points - b.points).max() < 0.7e-3


def test_a_second_recording_replaces_the_first(seen, tmp_path):
    save_observations(seen, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    save_observations(Observations(seen.frames[:1], CAMERAS, None), tmp_path, "ply")
    assert len(load_observations(tmp_path).frames) == 1
    assert not list(tmp_path.glob("*.npz"))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_depth_beyond_sixteen_bits_gets_a_coarser_scale(tmp_path, caplog):
    far = Observations([frame(0.0, np.array([0]), np.array([50]), np.array([200.0]))], CAMERAS)
    save_observations(far, tmp_path, "depth")
    assert "16 bits" in caplog.text
    assert load_observations(tmp_path).frames[0].depth[0] == pytest.approx(200.0, abs=0.005 / 0.8)


def test_unorganised_points_are_no_depth_image(tmp_path):
    none = np.array([-1])
    points = Frame(0.0, np.zeros((1, 3)), none, none, np.array([np.nan]))
    with pytest.raises(pl.BadInput, match="layout 'npz' or 'ply'"):
        save_observations(Observations([points], CAMERAS), tmp_path, "depth")


# --- Open3D's conventions


def test_open3d_matrices_are_column_after_column():
    record = camera_record(CAMERAS[0])
    assert record["intrinsic"]["intrinsic_matrix"][6] == CAMERAS[0].cx
    T = np.array(record["extrinsic"]).reshape(4, 4).T
    # the world's image of the camera's own place is the origin
    assert np.abs(T @ [*CAMERAS[0].position, 1.0] - [0, 0, 0, 1]).max() < 1e-14


def test_log_holds_the_inverse(tmp_path):
    c = CAMERAS[0]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = c.rotation.T, c.position
    rows = "\n".join(" ".join(f"{x:.12f}" for x in row) for row in pose)
    (tmp_path / "trajectory.log").write_text(f"0 0 0\n{rows}\n")
    K = [c.fx, 0, 0, 0, c.fy, 0, c.cx, c.cy, 1]
    intrinsic = {"width": 12, "height": 9, "intrinsic_matrix": K}
    (tmp_path / "intrinsic.json").write_text(json.dumps(intrinsic))
    (found,) = read_cameras(tmp_path)
    assert np.abs(found.position - c.position).max() < 1e-10
    assert np.abs(found.rotation - c.rotation).max() < 1e-10
    intrinsic["intrinsic_matrix"] = [c.fx, 0, c.cx, 0, c.fy, c.cy, 0, 0, 1]  # rows, as others do
    (tmp_path / "intrinsic.json").write_text(json.dumps(intrinsic))
    (found,) = read_cameras(tmp_path)
    assert (found.cx, found.cy) == (c.cx, c.cy)


def test_a_camera_that_moves_has_a_pose_for_each_image(seen, tmp_path):
    for k in range(2):
        place = tmp_path / "depth"
        place.mkdir(exist_ok=True)
        Image.fromarray(np.full((9, 12), 2000, np.uint16)).save(place / f"{k:06d}.png")
    moved = Camera.looking((0.0, 0.0, 5.0), (0.0, 0.0, 0.0), width=12, height=9)
    record = {"parameters": [camera_record(CAMERAS[0]), camera_record(moved)]}
    (tmp_path / "trajectory.json").write_text(json.dumps(record))
    back = load_observations(tmp_path, frame_rate=10.0)
    assert [f.time for f in back.frames] == [0.0, 0.1]
    assert [set(f.camera) for f in back.frames] == [{0}, {1}]
    assert back.frames[1].points[:, 2] == pytest.approx(3.0)  # two metres before z = 5


# --- recordings of others


def test_frame_numbers_come_from_the_names(tmp_path, caplog):
    for number in (9, 10, 12):
        (tmp_path / f"scan_{number}.ply").write_text(ply_text([[number, 0, 0]]))
    back = load_observations(tmp_path)
    assert "30 frames a second" in caplog.text
    assert [f.points[0, 0] for f in back.frames] == [9, 10, 12]
    assert [f.time for f in back.frames] == pytest.approx([0.0, 1 / 30, 3 / 30])
    back = load_observations(tmp_path, frame_rate=10.0)
    assert [f.time for f in back.frames] == pytest.approx([0.0, 0.1, 0.3])


def test_binary_ply_in_single_precision(tmp_path):
    head = (
        "ply\nformat binary_big_endian 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"
        "property float z\nproperty uchar red\nend_header\n"
    )
    rows = struct.pack(">fffB", 1, 2, 3, 4) + struct.pack(">fffB", 5, 6, 7, 8)
    (tmp_path / "a.ply").write_bytes(head.encode() + rows)
    assert load_observations(tmp_path).frames[0].points.tolist() == [[1, 2, 3], [5, 6, 7]]


@pytest.mark.parametrize(("factor", "units"), [(1.0, "m"), (100.0, "cm"), (1000.0, "mm")])
def test_units_are_judged_by_the_body(tmp_path, caplog, factor, units):
    rng = np.random.default_rng(0)
    points = rng.uniform((0, 0, 0), (1.0, 0.5, 0.5), (400, 3))
    (tmp_path / "0.ply").write_text(ply_text(factor * points))
    back = load_observations(tmp_path, scene=block())
    assert np.abs(back.frames[0].points - points).max() < 1e-6
    assert (f"in {units}" in caplog.text) == (units != "m")
    stated = load_observations(tmp_path, units=units, scene=block())
    assert np.array_equal(stated.frames[0].points, back.frames[0].points)


def test_an_empty_frame_is_kept(seen, tmp_path, caplog):
    empty = frame(0.5, np.zeros(0, int), np.zeros(0, int), np.zeros(0))
    with_empty = Observations([*seen.frames, empty], CAMERAS)
    for layout in ("npz", "ply", "depth"):
        caplog.clear()
        save_observations(with_empty, tmp_path / layout, layout)
        back = load_observations(tmp_path / layout)
        assert len(back.frames) == 4
        assert len(back.frames[3]) == 0
        assert "frame 3 (t = 0.5 s) has no points" in caplog.text


def test_points_of_unknown_cameras_are_used_without(seen, tmp_path, caplog):
    save_observations(seen, tmp_path)
    record = json.loads((tmp_path / "observations.json").read_text())
    record["cameras"] = record["cameras"][:1]
    (tmp_path / "observations.json").write_text(json.dumps(record))
    back = load_observations(tmp_path)
    assert "used without their cameras" in caplog.text
    assert not any(f.organised for f in back.frames)
    assert np.array_equal(back.frames[0].points, seen.frames[0].points)


def test_a_lost_image_and_an_undescribed_camera(seen, tmp_path, caplog):
    save_observations(seen, tmp_path, "depth")
    (tmp_path / "depth" / "camera_01" / "00001.png").unlink()
    back = load_observations(tmp_path)
    assert "camera 1 has no image of frame 1" in caplog.text
    assert [set(f.camera) for f in back.frames] == [{0, 1}, {0}, {0, 1}]
    record = json.loads((tmp_path / "trajectory.json").read_text())
    record["parameters"] = record["parameters"][:1]
    (tmp_path / "trajectory.json").write_text(json.dumps(record))
    back = load_observations(tmp_path)
    assert "only 1 are described" in caplog.text
    assert [set(f.camera) for f in back.frames] == [{0}, {0}, {0}]


def test_a_clock_is_counted_from_the_first_frame(seen, tmp_path, caplog):
    save_observations(seen, tmp_path)
    record = json.loads((tmp_path / "observations.json").read_text())
    record["times"] = [1.7e9, 1.7e9 + 0.5, 1.7e9 + 1.0]
    (tmp_path / "observations.json").write_text(json.dumps(record))
    assert [f.time for f in load_observations(tmp_path).frames] == [0.0, 0.5, 1.0]
    assert "a clock's" in caplog.text


def test_background_and_table_are_dropped(caplog):
    scene = block(obstacles=[pl.Plane(offset=-0.2)], gravity=(0.0, 0.0, 0.0))
    run = pl.simulate(scene, 1)
    surface = run.surface(0)
    wall = surface + [0.0, 0.0, 5.0]
    x, z = np.meshgrid(np.linspace(1.6, 2.0, 5), np.linspace(0.0, 0.5, 5))
    table = np.stack([x.ravel(), np.full(25, -0.19), z.ravel()], axis=1)
    points = np.concatenate([surface, wall, table])
    none = np.full(len(points), -1)
    seen = Observations([Frame(0.0, points, none, none, np.full(len(points), np.nan))])
    kept = crop_to_body(seen, scene, 1.5, run=run)
    assert np.array_equal(kept.frames[0].points, surface)
    assert "background" in caplog.text
    assert "25 points lie on a plane" in caplog.text
    none = none[: len(wall)]
    away = Observations([Frame(0.0, wall, none, none, np.full(len(wall), np.nan))])
    with pytest.raises(pl.BadInput, match="units, the cameras' poses"):
        crop_to_body(away, scene, 0.5, run=run)


def test_a_camera_without_images_leaves_the_others_theirs(seen, tmp_path, caplog):
    """The first camera's folder is gone: the second keeps its own pose, whatever the order."""
    import shutil

    save_observations(seen, tmp_path, "depth")
    shutil.rmtree(tmp_path / "depth" / "camera_00")
    back = load_observations(tmp_path)
    assert "camera 0 has no images" in caplog.text
    for mine, theirs in zip(back.frames, seen.frames, strict=True):
        assert set(mine.camera) <= {1}
        assert mine.points == pytest.approx(theirs.points[theirs.camera == 1], abs=2e-3)
    (tmp_path / "depth" / "camera_01").rename(tmp_path / "depth" / "camera_2")  # counted from one
    assert set(load_observations(tmp_path).frames[0].camera) == {1}
