"""Motions in other programs' formats: read back, the numbers are the run's."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh
from command_line import block, in_process, write

import pliant as pl
from pliant.app.commands.export import target
from pliant.app.describing.scene_files import build_scene
from pliant.app.formats.gltf import write_gltf
from pliant.app.formats.surface_motion import surface_motion
from pliant.app.formats.usd import write_usd


@pytest.fixture(scope="module")
def run():
    scene = build_scene(block(gravity=[0.0, -9.81, 0.0]))
    return pl.simulate(scene, steps=4)


def glb(path):
    """The two chunks of a binary glTF, checked against the headers' lengths."""
    data = path.read_bytes()
    magic, version, length = struct.unpack_from("<4sII", data)
    assert (magic, version, length) == (b"glTF", 2, len(data))
    count, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    assert count % 4 == 0
    document = json.loads(data[20 : 20 + count])
    size, kind = struct.unpack_from("<I4s", data, 20 + count)
    assert kind == b"BIN\0"
    assert size % 4 == 0
    assert size == document["buffers"][0]["byteLength"] == len(data) - 28 - count
    return document, data[28 + count :]


def accessor(document, data, index):
    """The array an accessor describes, with the rules of the specification checked."""
    a = document["accessors"][index]
    view = document["bufferViews"][a["bufferView"]]
    kind = {5126: np.float32, 5125: np.uint32}[a["componentType"]]
    width = {"SCALAR": 1, "VEC3": 3}[a["type"]]
    assert view["byteOffset"] % 4 == 0
    assert view["byteLength"] == 4 * width * a["count"]
    assert view["byteOffset"] + view["byteLength"] <= len(data)
    values = np.frombuffer(data, kind, a["count"] * width, view["byteOffset"]).reshape(-1, width)
    if "min" in a:
        assert np.array_equal(values.min(axis=0), np.array(a["min"], kind))
        assert np.array_equal(values.max(axis=0), np.array(a["max"], kind))
    return values


def test_gltf_plays_the_run(run, tmp_path):
    """Blending the morph targets by the animation's weights gives each frame's surface."""
    motion = surface_motion(run)
    write_gltf(tmp_path / "a.glb", motion)
    document, data = glb(tmp_path / "a.glb")
    assert document["asset"]["version"] == "2.0"
    mesh = document["meshes"][0]
    primitive = mesh["primitives"][0]
    faces = accessor(document, data, primitive["indices"]).reshape(-1, 3)
    assert np.array_equal(faces, motion.mesh.triangles)
    base = accessor(document, data, primitive["attributes"]["POSITION"])
    assert "min" in document["accessors"][primitive["attributes"]["POSITION"]]
    targets = [accessor(document, data, t["POSITION"]) for t in primitive["targets"]]
    assert len(targets) == len(mesh["weights"]) == run.steps
    sampler = document["animations"][0]["samplers"][0]
    times = accessor(document, data, sampler["input"])[:, 0]
    weights = accessor(document, data, sampler["output"]).reshape(len(times), len(targets))
    assert np.allclose(times, run.times)
    assert document["animations"][0]["channels"][0]["target"] == {"node": 0, "path": "weights"}
    for k in range(len(times)):
        blended = base + np.einsum("t,tvi->vi", weights[k], np.stack(targets))
        assert np.allclose(blended, run.surface(k), atol=1e-6)
    normals = accessor(document, data, primitive["attributes"]["NORMAL"])
    assert np.allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-5)


def test_gltf_opens_elsewhere(run, tmp_path):
    for name in ("a.glb", "a.gltf"):
        write_gltf(tmp_path / name, surface_motion(run, every=3))
        loaded = trimesh.load(tmp_path / name, force="mesh", process=False)
        assert loaded.volume == pytest.approx(0.25, rel=1e-5)  # the block at rest
    pygltflib = pytest.importorskip("pygltflib")
    opened = pygltflib.GLTF2().load(str(tmp_path / "a.glb"))
    assert len(opened.meshes[0].primitives[0].targets) == 2  # steps 3 and 4
    assert opened.animations[0].channels[0].target.path == "weights"


def test_usd_has_the_run(run, tmp_path):
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    for name in ("a.usda", "a.usdc"):
        write_usd(tmp_path / name, surface_motion(run), name="a block")
        stage = Usd.Stage.Open(str(tmp_path / name))
        assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
        mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/World/a_block"))
        points = mesh.GetPointsAttr()
        assert np.allclose(np.array(points.GetTimeSamples()) / 24.0, run.times)
        last = np.array(points.Get(24.0 * run.times[-1]))
        assert np.allclose(last, run.surface(run.steps), atol=1e-6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.usda", "a.usdc"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A finished run on disk."""
    from pliant.app.commands.simulate import simulate_into

    folder = tmp_path_factory.mktemp("run")
    scene = write(folder / "block.toml", block(steps=3, gravity=[0.0, -9.81, 0.0]))
    simulate_into(str(scene), out=str(folder / "run"), pictures=False)
    return folder / "run"


@pytest.mark.parametrize(
    ("kind", "name", "files"),
    [
        ("gltf", "m.glb", None),
        ("obj", "obj", [f"surface_00000{k}.obj" for k in range(4)] + ["times.json"]),
        ("ply", "ply", [f"surface_00000{k}.ply" for k in range(4)] + ["times.json"]),
        ("vtu", "vtu", [f"frame_00000{k}.vtu" for k in range(4)] + ["trajectory.pvd"]),
        ("gif", "m.gif", None),
        ("mp4", "m.mp4", None),
    ],
)
def test_export_from_the_command_line(stored, tmp_path, capfd, monkeypatch, kind, name, files):
    if kind == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / name
    code, text, errors = in_process(
        capfd, monkeypatch, "export", stored, "--format", kind, "--out", out, "--json"
    )
    assert code == 0, errors
    assert json.loads(text) == {"out": str(out), "format": kind, "frames": 4}
    if files is not None:
        assert sorted(p.name for p in out.iterdir()) == files
        if kind in ("obj", "ply"):
            last = trimesh.load(out / files[3], process=False)
            assert last.is_watertight
    code, _, errors = in_process(
        capfd, monkeypatch, "export", stored, "--format", kind, "--out", out
    )
    assert code == 2
    assert "--overwrite" in errors


def test_render_from_the_command_line(stored, tmp_path, capfd, monkeypatch):
    from PIL import Image

    for number, options in enumerate(
        [(), ("--style", "field", "--colour", "strain"),
         ("--style", "slice", "--slice-axis", "z", "--slice-values", "--colour", "stress")]
    ):  # fmt: skip
        out = tmp_path / f"{number}.png"
        size = ("--width", 120, "--height", 90)
        code, _, errors = in_process(
            capfd, monkeypatch, "render", stored, "--out", out, *size, *options
        )
        assert code == 0, errors
        assert Image.open(out).size == (120, 90)
    code, _, errors = in_process(capfd, monkeypatch, "render", stored, "--out", tmp_path / "x.jpg")
    assert code == 2
    assert ".png, .gif, .mp4" in errors
    code, _, errors = in_process(
        capfd, monkeypatch, "render", stored, "--out", tmp_path / "x.png", "--time", 99
    )
    assert code == 2
    assert "outside the motion" in errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.png", "1.png", "2.png"]


def test_colour_by_observation_from_the_command_line(stored, tmp_path, capfd, monkeypatch):
    """The run against its own film: nowhere farther than the points are apart."""
    seen = tmp_path / "seen"
    film = ("--cameras", 3, "--pixels", 40, "--noise", "0")
    code, _, errors = in_process(capfd, monkeypatch, "observe", stored, "--out", seen, *film)
    assert code == 0, errors
    out = tmp_path / "a.png"
    wanted = ("render", stored, "--colour", "observation", "--out", out)
    code, _, errors = in_process(capfd, monkeypatch, *wanted, "--observations", seen)
    assert code == 0, errors
    assert out.is_file()
    code, _, errors = in_process(capfd, monkeypatch, *wanted, "--overwrite")
    assert code == 2
    assert "observed points" in errors


def test_formats_and_endings():
    assert target(None, None, "torus") == ("gltf", Path("torus.glb"))
    assert target(None, "a.usda", "x")[0] == "usd"
    assert str(target("obj", None, "torus")[1]) == "torus-obj"
    for bad in (("gltf", "a.obj"), ("fbx", None), (None, "a.fbx")):
        with pytest.raises(pl.BadInput):
            target(*bad, "x")


def test_flat_bodies_have_no_triangles():
    scene = pl.Scene(pl.GridBody(pl.shapes.circle(radius=1.0), 0.5))
    with pytest.raises(pl.BadInput, match="2D body"):
        surface_motion(pl.simulate(scene, steps=1))
