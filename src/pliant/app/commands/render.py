"""`pliant render`: pictures and films of a run or a scene."""

from pathlib import Path
from typing import Annotated

import typer

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

MotionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENE|DIR", help="A built-in scene's name, a TOML file or a run directory."
    ),
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="Time steps; the scene's own if not given.")
]
MeshOption = Annotated[
    str | None,
    typer.Option("--mesh", metavar="FILE", help="Show this fine mesh, carried by the body."),
]
FitMeshOption = Annotated[
    bool, typer.Option("--fit-mesh", help="Move and scale the mesh to where the body is.")
]
OwnOption = Annotated[
    bool,
    typer.Option(
        "--own-surface", help="Show the body's own triangles, not the mesh that it is made from."
    ),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there already.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("render")(render_motion)


@command
def render_motion(
    scene: MotionArgument,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="A .png, .gif or .mp4 file; SCENE.png if not given."
        ),
    ] = None,
    style: Annotated[
        str,
        typer.Option("--style", help="surface (triangles), field (the moving level set) or slice."),
    ] = "surface",
    colour: Annotated[
        str, typer.Option("--colour", help="displacement, strain, stress or observation.")
    ] = "displacement",
    slice_axis: Annotated[
        str, typer.Option("--slice-axis", help="x, y, z, or camera for a slice that faces it.")
    ] = "camera",
    slice_at: Annotated[
        float | None,
        typer.Option("--slice-at", help="Where it cuts, in metres; by default the body's middle."),
    ] = None,
    slice_values: Annotated[
        bool,
        typer.Option(
            "--slice-values/--slice-distance",
            help="Colour the slice like the surface, or by the distance to it.",
        ),
    ] = False,
    mesh: MeshOption = None,
    fit_mesh: FitMeshOption = False,
    own: OwnOption = False,
    observations: Annotated[
        str | None,
        typer.Option("--observations", metavar="DIR", help="What --colour observation needs."),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option("--time", help="The moment of a picture, in seconds; by default the last."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How long a film lasts; chosen to suit.")
    ] = None,
    width: Annotated[int, typer.Option("--width", help="Pixels.")] = 640,
    height: Annotated[int, typer.Option("--height", help="Pixels.")] = 480,
    samples: Annotated[
        int | None,
        typer.Option("--samples", help="Rays per axis at edges; 3 in a picture, 2 in a film."),
    ] = None,
    azimuth: Annotated[
        float | None, typer.Option("--azimuth", help="Degrees of the camera to the right of +z.")
    ] = None,
    elevation: Annotated[
        float | None, typer.Option("--elevation", help="Degrees of the camera above the horizon.")
    ] = None,
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
    """Draw the run in DIR, or SCENE after simulating it, as a picture or a film."""
    from pliant.app.folders.films import motion_of
    from pliant.app.pictures.motion_pictures import Look, draw_motion
    from pliant.app.pictures.picture import Cut
    from pliant.fem.bodies.render_mesh import load_render_mesh
    from pliant.observe.files import load_observations

    path = Path(out or f"{Path(scene).stem}.png")
    require_free_file(path, overwrite=overwrite)
    cut = Cut(slice_axis, at=slice_at, values=slice_values)
    look = Look(style, colour, cut, width, height, samples, azimuth, elevation)
    set_machine(device, threads)
    run = motion_of(
        scene, shape=ShapeFile.asked(shape, shape_units), steps=steps,
        fineness=Fineness(spacing, cells_across), rest=True,
    )  # fmt: skip
    if mesh and own:
        raise BadInput("--mesh and --own-surface contradict each other: give one of them.")
    carried = load_render_mesh(run.scene.body, mesh, fit=fit_mesh) if mesh else None
    seen = load_observations(observations, scene=run.scene) if observations else None
    with progress("drawing", len(run.times)) as shown:
        count = draw_motion(
            run, path, look, time=time, seconds=seconds, mesh=carried, own=own, seen=seen,
            progress=lambda done, _: shown.reach(done),
        )  # fmt: skip
    result = {"out": str(path), "frames": count, "width": width, "height": height}
    answer(result, [f"{count} frame{'s' * (count != 1)} in {path}"], as_json=as_json)


def require_free_file(path: Path, *, overwrite: bool) -> None:
    """Refuse a place without a folder, and a file that may not be replaced."""
    if not path.parent.is_dir():
        raise BadInput(f"{path.parent}: there is no such folder for {path.name}.")
    if path.is_dir():
        raise BadInput(f"{path}: is a folder; --out needs a file.")
    if path.exists() and not overwrite:
        raise BadInput(f"{path}: exists already; choose another --out or --overwrite.")
    require_writable(path)
