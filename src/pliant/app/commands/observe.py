"""`pliant observe`: what depth cameras see of a scene's motion, as files."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import ShapeFile
from pliant.app.fitted.fit_values import TRUTH, scene_values
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
from pliant.app.terminal.film_options import (
    CamerasOption,
    DroppedOption,
    KindOption,
    NoiseOption,
    OutliersOption,
    PixelsOption,
    QuantisationOption,
    SeedOption,
    StepsOption,
)
from pliant.core.errors import BadInput
from pliant.core.files import require_writable, write_json
from pliant.core.lengths import length
from pliant.dynamics.trajectory import Trajectory
from pliant.observe.files import LAYOUTS, RECORD, save_observations
from pliant.observe.observations import Observations


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("observe")(film_scene)


@command
def film_scene(
    scene: Annotated[
        str,
        typer.Argument(
            metavar="SCENE|DIR", help="A built-in scene's name, a TOML file or a run directory."
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="The folder; runs/SCENE-seen if not given."),
    ] = None,
    cameras: CamerasOption = 10,
    pixels: PixelsOption = 100,
    noise: NoiseOption = "0.5voxel",
    seed: SeedOption = 1,
    outliers: OutliersOption = 0.0,
    dropped: DroppedOption = 0.0,
    quantisation: QuantisationOption = 0.0,
    kind: KindOption = "depth",
    layout: Annotated[
        str, typer.Option("--layout", help=f"Files to write: {', '.join(LAYOUTS)}.")
    ] = "npz",
    colours: Annotated[
        bool,
        typer.Option(
            "--colours",
            help="Paint the body with stripes, two pixels wide, and film colours, too "
            "(for pliant texture).",
        ),
    ] = False,
    steps: StepsOption = None,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace observations that are there already.")
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Film SCENE, or the run in DIR, with a ring of depth cameras."""
    from pliant.app.folders.films import Film, motion_of

    film = Film(cameras, pixels, noise, seed, outliers, dropped, quantisation, kind)
    if layout not in LAYOUTS:
        raise BadInput(f"--layout must be one of {', '.join(LAYOUTS)}, not '{layout}'.")
    if layout == "depth" and kind == "points":
        raise BadInput("--layout depth stores pixels, which --kind points does not have.")
    folder = Path(out or Path("runs") / f"{Path(scene).stem}-seen")
    require_free(folder, overwrite=overwrite)
    set_machine(device, threads)
    fineness = Fineness(spacing, cells_across)
    file = ShapeFile.asked(shape, shape_units)
    run = motion_of(scene, shape=file, steps=steps, fineness=fineness)
    seen = film.take(run)
    save_observations(seen, folder, layout)
    if colours:
        _film_colours(run, seen, folder)
    write_json(folder / TRUTH, scene_values(run.scene))
    result = {
        "title": (run.scene.source or {}).get("title", ""),
        "out": str(folder),
        "layout": layout,
        "frames": len(seen.frames),
        "cameras": len(seen.cameras),
        "points": seen.point_count,
        "noise": seen.noise,
    }
    lines = [
        f"{len(seen.frames)} frames, {len(seen.cameras)} cameras, {seen.point_count} points, "
        f"noise {length(seen.noise or 0.0)}",
        f"files in {folder}; next: {_next(scene, file, fineness, folder)}",
    ]
    answer(result, lines, as_json=as_json)


def _film_colours(run: Trajectory, seen: Observations, folder: Path) -> None:
    """Colour images of the same frames, of a body that is painted with stripes."""
    from pliant.app.folders.painting import pixel_width
    from pliant.observe.colour_files import FOLDERS, write_colour_png
    from pliant.observe.colour_film import film_colours, stripes

    paint = stripes(2.0 * pixel_width(seen.cameras, run.scene.body.nodes))
    films = film_colours(run, seen.cameras, paint, frames=range(1, len(run.times)))
    for k, views in enumerate(films):
        for number, image in enumerate(views):
            place = folder / FOLDERS[0] / f"camera_{number:02d}"
            place.mkdir(parents=True, exist_ok=True)
            write_colour_png(place / f"{k:05d}.png", image)


def _next(scene: str, shape: ShapeFile | None, fineness: Fineness, folder: Path) -> str:
    """The command that fits what was filmed, as a shell takes it."""
    words = ["pliant", "reconstruct", scene]
    for option, value in (
        ("--shape", None if shape is None else shape.path),
        ("--shape-units", None if shape is None else shape.units),
        ("--spacing", fineness.spacing),
        ("--cells-across", fineness.cells_across),
        ("--observations", folder),
    ):
        words += [] if value is None else [option, str(value)]
    return shlex.join(words)


def require_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a file, a folder with other things, and a recording that may not be replaced."""
    require_writable(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    if (folder / RECORD).is_file():
        if not overwrite:
            raise BadInput(f"{folder}: holds observations; choose another --out or --overwrite.")
    elif any(folder.iterdir()):
        raise BadInput(f"{folder}: the folder is not empty; choose another --out.")
