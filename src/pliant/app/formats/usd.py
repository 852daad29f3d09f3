"""Universal Scene Description: one mesh whose points have time samples. Needs `usd-core`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from pliant.app.formats.surface_motion import SurfaceMotion
from pliant.core.errors import BadInput, MissingExtra
from pliant.core.files import whole_file

MODULES = ("Gf", "Tf", "Usd", "UsdGeom", "Vt")
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
        Gf, Tf, Usd, UsdGeom, Vt = (import_module(f"pxr.{name}") for name in MODULES)
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
    triangles = motion.mesh.triangles
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.reshape(-1).astype(np.int32)))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(True)
    mesh.CreateDisplayColorAttr([Gf.Vec3f(0.16, 0.43, 0.55)])
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
