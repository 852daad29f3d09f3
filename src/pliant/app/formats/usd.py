"""Universal Scene Description: one mesh whose points have time samples. Needs `usd-core`.

A texture is a file beside it, NAME_texture.png: USD holds none.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.formats.surface_motion import SurfaceMotion
from pliant.core.errors import BadInput, MissingExtra
from pliant.core.files import whole_file
from pliant.geometry.mesh_look import MeshLook

MODULES = ("Gf", "Tf", "Usd", "UsdGeom", "UsdShade", "Sdf", "Vt")
"""Compiled modules without types, so they are imported by name."""

SUFFIXES = (".usd", ".usda", ".usdc")

RATE = 24.0
"""Time codes per second. Samples sit at their own times, which need not be whole codes."""


def write_usd(
    path: str | Path,
    motion: SurfaceMotion,
    *,
    name: str = "body",
    progress: Callable[[int], None] | None = None,
) -> None:
    """A stage in metres, y up, with the mesh /World/<name>; .usda is text, the others binary."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"{path}: USD files end in {', '.join(SUFFIXES)}.")
    try:
        Gf, Tf, Usd, UsdGeom, UsdShade, Sdf, Vt = (import_module(f"pxr.{name}") for name in MODULES)
    except ImportError as error:
        raise MissingExtra("usd-core", "usd", "Writing USD") from error
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(RATE)
    stage.SetStartTimeCode(RATE * float(motion.times[0]))
    stage.SetEndTimeCode(RATE * float(motion.times[-1]))
    world = UsdGeom.Xform.Define(stage, "/World")
    stage.SetDefaultPrim(world.GetPrim())
    mesh = UsdGeom.Mesh.Define(stage, f"/World/{Tf.MakeValidIdentifier(name)}")
    triangles = motion.triangles
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.reshape(-1).astype(np.int32)))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(True)
    look = motion.look
    shade = (0.16, 0.43, 0.55) if look is None else look.colour[:3]
    mesh.CreateDisplayColorAttr([Gf.Vec3f(*shade)])
    texture = path.with_name(f"{path.stem}_texture.png")
    if look is not None:
        _add_look(stage, mesh, look, texture.name, (Gf, UsdGeom, UsdShade, Sdf, Vt))
        if look.texture is not None:
            with whole_file(texture) as temporary:
                temporary.write_bytes(look.texture)
    points, normals = mesh.CreatePointsAttr(), mesh.CreateNormalsAttr()
    mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    extent = mesh.CreateExtentAttr()
    for k, (time, positions, direction) in enumerate(motion.frames()):
        if not np.isfinite(positions).all():
            raise BadInput(f"Frame {k} has positions that are not finite: nothing to export.")
        code = Usd.TimeCode(RATE * time)
        p = np.ascontiguousarray(positions, np.float32)
        points.Set(Vt.Vec3fArray.FromNumpy(p), code)
        normals.Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(direction, np.float32)), code)
        box = np.ascontiguousarray([p.min(axis=0), p.max(axis=0)], np.float32)
        extent.Set(Vt.Vec3fArray.FromNumpy(box), code)
        if progress is not None:
            progress(k + 1)
    with whole_file(path) as temporary:
        temporary.unlink()  # the exporter wants to make its file itself
        if not stage.GetRootLayer().Export(str(temporary)):
            raise BadInput(f"{path}: cannot be written.")


def _add_look(stage: Any, mesh: Any, look: MeshLook, file: str, modules: tuple) -> None:
    """Texture coordinates `st`, and a UsdPreviewSurface with the colour or the texture."""
    Gf, UsdGeom, UsdShade, Sdf, Vt = modules
    if look.uv is not None:
        coordinates = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar(
            "st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.vertex
        )
        coordinates.Set(Vt.Vec2fArray.FromNumpy(np.ascontiguousarray(look.uv, np.float32)))
    material = UsdShade.Material.Define(stage, "/World/Looks/look")
    surface = UsdShade.Shader.Define(stage, "/World/Looks/look/surface")
    surface.CreateIdAttr("UsdPreviewSurface")
    floats, colour = Sdf.ValueTypeNames.Float, Sdf.ValueTypeNames.Color3f
    surface.CreateInput("metallic", floats).Set(look.metallic)
    surface.CreateInput("roughness", floats).Set(look.roughness)
    surface.CreateInput("opacity", floats).Set(look.colour[3])
    base = surface.CreateInput("diffuseColor", colour)
    base.Set(Gf.Vec3f(*look.colour[:3]))
    material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    if look.texture is not None:
        reader = UsdShade.Shader.Define(stage, "/World/Looks/look/coordinates")
        reader.CreateIdAttr("UsdPrimvarReader_float2")
        reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set("st")
        image = UsdShade.Shader.Define(stage, "/World/Looks/look/texture")
        image.CreateIdAttr("UsdUVTexture")
        image.CreateInput("file", Sdf.ValueTypeNames.Asset).Set(Sdf.AssetPath(file))
        image.CreateInput("scale", Sdf.ValueTypeNames.Float4).Set(Gf.Vec4f(*look.colour))
        for wrap in ("wrapS", "wrapT"):
            image.CreateInput(wrap, Sdf.ValueTypeNames.Token).Set("repeat")
        image.CreateInput("st", Sdf.ValueTypeNames.Float2).ConnectToSource(
            reader.ConnectableAPI(), "result"
        )
        base.ConnectToSource(image.ConnectableAPI(), "rgb")
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
