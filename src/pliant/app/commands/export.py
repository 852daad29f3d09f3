"""`pliant export`: a motion as files that other programs open."""

from pathlib import Path
from typing import Annotated

import typer

from pliant.app.commands.render import (
    FitMeshOption,
    MeshOption,
    MotionArgument,
    OverwriteOption,
    OwnOption,
    StepsOption,
    require_free_file,
)
from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import ShapeFile
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    ShapeOption,
    ShapeUnitsOption,
    SpacingOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.files import require_writable
from pliant.dynamics.trajectory import Trajectory

ENDINGS = {
    "gltf": (".glb", ".gltf"),
    "usd": (".usdc", ".usda", ".usd"),
    "mp4": (".mp4",),
    "gif": (".gif",),
    "obj": (),
    "ply": (),
    "vtu": (),
    "vtk": (),
    "nrrd": (),
}
"""Formats and the endings of their files; those without are folders, one file a frame."""


CELLS = ("vtu", "vtk", "nrrd")
"""Formats of the body itself, not of its surface: their lengths may be in other units."""

UNITS = {"m": 1.0, "cm": 1e2, "mm": 1e3}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export_motion)


@command
def export_motion(
    scene: MotionArgument,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{', '.join(ENDINGS)}; by the ending of --out if not given. gltf opens in "
            "Blender and browsers, vtu in ParaView, vtk (legacy) and nrrd (displacement fields) in "
            "3D Slicer; obj, ply, vtu, vtk and nrrd are folders.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE|DIR", help="Where to; SCENE.glb (or alike) if not given."
        ),
    ] = None,
    every: Annotated[int, typer.Option("--every", help="Every K-th saved frame.")] = 1,
    mesh: MeshOption = None,
    fit_mesh: FitMeshOption = False,
    own: OwnOption = False,
    units: Annotated[
        str,
        typer.Option("--units", help=f"Lengths in vtu, vtk and nrrd: {', '.join(UNITS)}."),
    ] = "m",
    steps: StepsOption = None,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Write the run in DIR, or SCENE after simulating it, in a format of other programs."""
    from pliant.app.folders.films import motion_of

    if every < 1:
        raise BadInput(f"--every must be at least 1, not {every}.")
    kind, path = target(kind, out, Path(scene).stem)
    if mesh and own:
        raise BadInput("--mesh and --own-surface contradict each other: give one of them.")
    if units not in UNITS:
        raise BadInput(f"--units must be one of {', '.join(UNITS)}, not '{units}'.")
    if units != "m" and kind not in CELLS:
        raise BadInput(f"--units goes with --format {', '.join(CELLS)}; others are in metres.")
    if ENDINGS[kind]:
        require_free_file(path, overwrite=overwrite)
    else:
        _require_free_folder(path, overwrite=overwrite)
    _require_extra(kind)
    set_machine(device, threads)
    run = motion_of(
        scene, shape=ShapeFile.asked(shape, shape_units), steps=steps,
        fineness=Fineness(spacing, cells_across), rest=True,
    )  # fmt: skip
    frames = write_motion(
        run, kind, path, every=every, mesh=mesh, fit_mesh=fit_mesh, own=own, scale=UNITS[units]
    )
    result = {"out": str(path), "format": kind, "frames": frames}
    answer(result, [f"{frames} frame{'s' * (frames != 1)} in {path}"], as_json=as_json)


def target(kind: str | None, out: str | None, stem: str) -> tuple[str, Path]:
    """Format and path, each from the other where only one is given."""
    suffix = Path(out).suffix.lower() if out else ""
    by_ending = {e: k for k, endings in ENDINGS.items() for e in endings}
    if kind is None:
        if out is None:
            kind = "gltf"
        elif suffix in by_ending:
            kind = by_ending[suffix]
        else:
            raise BadInput(f"{out}: give --format, one of {', '.join(ENDINGS)}.")
    if kind not in ENDINGS:
        raise BadInput(f"--format must be one of {', '.join(ENDINGS)}, not '{kind}'.")
    endings = ENDINGS[kind]
    if out is None:
        return kind, Path(stem + (endings[0] if endings else f"-{kind}"))
    if endings and suffix not in endings:
        raise BadInput(f"{out}: --format {kind} writes a file that ends in {' or '.join(endings)}.")
    return kind, Path(out)


def write_motion(
    run: Trajectory,
    kind: str,
    path: Path,
    *,
    every: int = 1,
    mesh: str | None = None,
    fit_mesh: bool = False,
    own: bool = False,
    scale: float = 1.0,
) -> int:
    """Write a run; returns how many frames there are.

    mesh: a file carried by the body; own: show the body's own surface, not the mesh that it was
    made from; scale: of lengths in the formats CELLS.
    """
    from pliant.app.formats.gltf import write_gltf
    from pliant.app.formats.sequence import (
        write_cell_sequence,
        write_displacement_fields,
        write_sequence,
    )
    from pliant.app.formats.surface_motion import surface_motion
    from pliant.app.formats.usd import write_usd
    from pliant.app.pictures.motion_pictures import Look, draw_motion
    from pliant.fem.bodies.render_mesh import load_render_mesh

    carried = load_render_mesh(run.scene.body, mesh, fit=fit_mesh) if mesh else None
    count = len({*range(0, len(run.times), every), len(run.times) - 1})
    with progress(f"writing {kind}", count) as shown:
        if kind == "nrrd":
            write_displacement_fields(path, run, every=every, scale=scale, progress=shown.reach)
        elif kind in CELLS:
            write_cell_sequence(
                path, run, f".{kind}", every=every, scale=scale, progress=shown.reach
            )
        elif kind in ("mp4", "gif"):
            draw_motion(
                _thinned(run, every), path, Look(), mesh=carried, own=own,
                progress=lambda done, _: shown.reach(done),
            )  # fmt: skip
        else:
            motion = surface_motion(run, mesh=carried, own=own, every=every)
            name = str((run.scene.source or {}).get("title") or "body")
            if kind == "gltf":
                write_gltf(path, motion, name=name, progress=shown.reach)
            elif kind == "usd":
                write_usd(path, motion, name=name, progress=shown.reach)
            else:
                write_sequence(path, motion, f".{kind}", progress=shown.reach)
    return count


def _thinned(run: Trajectory, every: int) -> Trajectory:
    from dataclasses import replace

    chosen = sorted({*range(0, len(run.times), every), len(run.times) - 1})
    return replace(
        run, times=run.times[chosen], displacements=run.displacements[chosen],
        velocities=run.velocities[chosen],
    )  # fmt: skip


def _require_free_folder(path: Path, *, overwrite: bool) -> None:
    if path.is_file():
        raise BadInput(f"{path}: is a file; this format needs a folder.")
    if path.is_dir() and any(path.iterdir()) and not overwrite:
        raise BadInput(f"{path}: the folder is not empty; choose another --out or --overwrite.")
    require_writable(path)


def _require_extra(kind: str) -> None:
    """Say what is missing before a simulation, not after."""
    import importlib.util

    from pliant.core.errors import MissingExtra

    needs = {
        "usd": ("pxr", "usd-core", "usd"),
        "mp4": ("imageio_ffmpeg", "imageio-ffmpeg", "video"),
        "nrrd": ("nrrd", "pynrrd", "medical"),
    }
    if kind in needs:
        module, package, extra = needs[kind]
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(package, extra, f"--format {kind}")
