"""Where the shape is a mesh, that mesh is shown and exported, with its texture and material."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from PIL import Image

import pliant as pl
from pliant.app.folders.export import write_surface
from pliant.app.formats.gltf import write_gltf
from pliant.app.formats.surface_motion import surface_motion
from pliant.app.formats.usd import write_usd
from pliant.app.pictures.picture import Studio
from pliant.fem.bodies.render_mesh import skin_of
from pliant.geometry.mesh_look import look_of

RED, GREEN = (200, 30, 30), (30, 180, 60)


def picture():
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:4], pixels[4:] = RED, GREEN
    return Image.fromarray(pixels)


def cube(folder, kind, *, texture="skin.png"):
    """A cube of side 1 whose six sides have seams: 24 vertices with coordinates of a texture."""
    corner = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], float)
    sides = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    vertices = np.concatenate([corner[list(s)] for s in sides])
    faces = np.concatenate([[[4 * k, 4 * k + 1, 4 * k + 2], [4 * k, 4 * k + 2, 4 * k + 3]]
                            for k in range(6)])  # fmt: skip
    uv = np.array([[0.1, 0.2], [0.9, 0.2], [0.9, 0.7], [0.1, 0.7]] * 6)
    path = folder / f"cube.{kind}"
    if kind == "glb":
        material = trimesh.visual.material.PBRMaterial(
            baseColorTexture=picture(), metallicFactor=0.25, roughnessFactor=0.5
        )
        look = trimesh.visual.TextureVisuals(uv=uv, material=material)
        trimesh.Trimesh(vertices, faces, visual=look, process=False).export(path)
    else:
        picture().save(folder / "skin.png")
        (folder / "cube.mtl").write_text(f"newmtl m\nKd 1 1 1\nmap_Kd {texture}\n")
        lines = ["mtllib cube.mtl", "usemtl m"]
        lines += [f"v {x} {y} {z}" for x, y, z in vertices]
        lines += [f"vt {u} {v}" for u, v in uv]
        lines += ["f " + " ".join(f"{i + 1}/{i + 1}" for i in face) for face in faces]
        path.write_text("\n".join(lines) + "\n")
    return path, vertices, uv


def swinging(shape):
    scene = pl.Scene(
        pl.GridBody(shape, 0.3, axes="world"), pl.Material(2000.0, density=3.0),
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(0, -1, 0), offset=-0.9))],
    )  # fmt: skip
    return pl.simulate(scene, 2)


def test_the_skin_is_the_mesh_wherever_it_is_put(tmp_path):
    path, vertices, _ = cube(tmp_path, "obj")
    mesh = pl.load_shape(path)
    shape = mesh.scaled(0.5).rotated(angle=0.3, axis=(0, 1, 0)).translated((1.0, 2.0, 3.0))
    turned = shape.mirrored(normal=(1, 0, 0))
    for placed in (mesh, shape, turned):
        body = pl.GridBody(placed, 0.11)
        skin = skin_of(body)
        at = skin.positions(body.nodes)
        assert np.abs(placed.distance(at)).max() < 1e-6
        volume = np.einsum("ij,ij->i", at[skin.triangles[:, 0]], np.cross(
            at[skin.triangles[:, 1]], at[skin.triangles[:, 2]])).sum() / 6.0  # fmt: skip
        assert volume == pytest.approx(1.0 if placed is mesh else 0.125, rel=1e-6)  # outward
        assert skin_of(body) is skin
    assert skin_of(pl.GridBody(pl.shapes.sphere(radius=1.0), 0.5)) is None
    assert skin_of(pl.GridBody(mesh - pl.shapes.sphere(radius=0.4), 0.25)) is None


@pytest.mark.parametrize("kind", ["obj", "glb"])
def test_texture_and_material_are_kept_in_gltf(tmp_path, kind):
    path, vertices, uv = cube(tmp_path, kind)
    run = swinging(pl.load_shape(path))
    out = tmp_path / "out.glb"
    write_gltf(out, surface_motion(run))
    again = trimesh.load(out, force="mesh", process=False)
    assert len(again.vertices) == 24
    order = np.lexsort(np.round(np.column_stack([again.vertices, again.visual.uv]), 5).T)
    given = np.lexsort(np.round(np.column_stack([vertices, uv]), 5).T)
    assert np.allclose(again.visual.uv[order], uv[given], atol=1e-6)
    assert np.allclose(again.vertices[order], vertices[given], atol=1e-6)
    image = np.asarray(again.visual.material.baseColorTexture.convert("RGB"))
    assert tuple(image[0, 0]) == RED
    assert tuple(image[-1, 0]) == GREEN
    document = json.loads(
        out.read_bytes()[20 : 20 + int.from_bytes(out.read_bytes()[12:16], "little")]
    )
    assert document["meshes"][0]["primitives"][0]["targets"]
    assert all(v["byteOffset"] % 4 == 0 for v in document["bufferViews"])
    if kind == "glb":
        pbr = document["materials"][0]["pbrMetallicRoughness"]
        assert pbr["metallicFactor"] == pytest.approx(0.25)
        assert pbr["roughnessFactor"] == pytest.approx(0.5)


def test_texture_and_material_are_kept_in_usd(tmp_path):
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom, UsdShade

    path, _, uv = cube(tmp_path, "obj")
    run = swinging(pl.load_shape(path))
    write_usd(tmp_path / "out.usda", surface_motion(run), name="cube")
    stage = Usd.Stage.Open(str(tmp_path / "out.usda"))
    mesh = stage.GetPrimAtPath("/World/cube")
    found = np.array(UsdGeom.PrimvarsAPI(mesh).GetPrimvar("st").Get())
    assert sorted(map(tuple, np.round(found.astype(float), 5))) == sorted(
        map(tuple, np.round(uv, 5))
    )
    material = UsdShade.MaterialBindingAPI(mesh).ComputeBoundMaterial()[0]
    texture = UsdShade.Shader(stage.GetPrimAtPath("/World/Looks/look/texture"))
    assert material.GetPath() == "/World/Looks/look"
    assert texture.GetInput("file").Get().path == "out_texture.png"
    image = Image.open(io.BytesIO((tmp_path / "out_texture.png").read_bytes())).convert("RGB")
    assert image.getpixel((0, 0)) == RED


def test_pictures_and_surfaces_show_the_mesh(tmp_path):
    path, _, _ = cube(tmp_path, "obj")
    run = swinging(pl.load_shape(path))
    body = run.scene.body
    write_surface(tmp_path / "surface.ply", body, run.displacements[-1])
    written = trimesh.load(tmp_path / "surface.ply", process=False)
    assert len(written.vertices) == 8
    assert written.volume == pytest.approx(1.0, rel=0.1)
    studio = Studio(run.scene, [body.nodes], width=64, height=48)
    own = Studio(run.scene, [body.nodes], width=64, height=48, own=True)
    assert len(studio._carrier) == 8
    assert len(own._carrier) == len(body.surface.points)
    assert len(surface_motion(run, own=True).mesh.points) == len(body.surface.points)
    assert studio.picture(body.nodes).shape == (48, 64, 3)


def test_the_editor_shows_the_mesh(tmp_path):
    viser = pytest.importorskip("viser")
    from pliant.app.editor.session import Session
    from pliant.app.editor.viewport import Viewport

    path, _, _ = cube(tmp_path, "obj")
    run = swinging(pl.load_shape(path))
    scene = replace(run.scene)
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    try:
        view = Viewport(server, Session(scene, name="cube", folder=tmp_path))
        view.new_body()
        view.draw(run.displacements[-1])
        assert len(view._surface.vertices) == 8
        view.look.slice_axis = "x"
        view.redraw()
        assert 0 < len(view._surface.faces) < 12
    finally:
        server.stop()


@pytest.mark.parametrize("texture", ["../secret.png", "/etc/passwd", "missing.png", "skin.txt"])
def test_only_pictures_beside_the_mesh_are_opened(tmp_path, texture):
    folder = tmp_path / "meshes"
    folder.mkdir()
    picture().save(tmp_path / "secret.png")
    path, _, uv = cube(folder, "obj", texture=texture)
    (folder / "skin.txt").write_bytes((folder / "skin.png").read_bytes())
    look = look_of(pl.load_shape(path))
    assert look is None or look.texture is None
