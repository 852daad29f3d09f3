"""`pliant scan`: depth frames of a body at rest, fused to a shape."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from pliant.app.commands.render import OverwriteOption, require_free_file
from pliant.app.terminal.console import (
    DeviceOption,
    JsonOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.lengths import length


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scan")(scan_folder)


@command
def scan_folder(
    folder: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="Depth frames with known cameras, body at rest."),
    ],
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="The shape, an .npz file.")
    ] = "shape.npz",
    spacing: Annotated[
        float | None,
        typer.Option("--spacing", help="Of the grid, in metres; twice a pixel's width if not set."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="auto|NX,NY,NZ,D",
            help="Remove the plane that the body stands on: found, or normal and offset.",
        ),
    ] = None,
    carve: Annotated[
        bool,
        typer.Option(
            "--carve/--no-carve", help="Whether pixels that saw nothing empty what lies behind."
        ),
    ] = True,
    units: Annotated[
        str | None, typer.Option("--units", help="Of the recording: m, cm, mm.")
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Fuse the depth frames in FOLDER, of a body at rest, to a closed shape."""
    from pliant.app.pictures.scan_picture import draw_scan
    from pliant.observe.files import load_observations
    from pliant.observe.fusion import fuse

    path = Path(out)
    if path.suffix != ".npz":
        raise BadInput(f"{path}: shapes are saved as .npz, change the ending of --out.")
    require_free_file(path, overwrite=overwrite)
    plane = _plane(table)
    set_machine(device, threads)
    seen = load_observations(folder, units=units)
    begun = perf_counter()
    with progress("fusing views", len(seen.frames) * max(len(seen.cameras), 1)) as shown:
        try:
            scan = fuse(
                seen, spacing, table=plane, carve=carve, progress=lambda done, _: shown.reach(done)
            )
        except BadInput as error:
            raise BadInput(f"{folder}: {error}") from error
    seconds = perf_counter() - begun
    scan.save(path)
    picture = path.with_suffix(".png")
    draw_scan(scan, picture)
    low, high = scan.shape.bounds
    result: dict[str, Any] = {
        "out": str(path),
        "picture": str(picture),
        "views": scan.view_count,
        "spacing": scan.shape.spacing,
        "grid": list(scan.shape.values.shape),
        "size": (high - low).tolist(),
        "volume": scan.shape.volume(),
        "disagreement": scan.disagreement,
        "overlap": scan.overlap,
        "seen": scan.seen,
        "pieces_removed": scan.pieces,
        "cavities_filled": scan.cavities,
        "table": None if scan.table is None else [*scan.table[0].tolist(), scan.table[1]],
        "advice": list(scan.advice),
        "seconds": seconds,
    }
    grid = " x ".join(str(n) for n in scan.shape.values.shape)
    lines = [
        f"{scan.view_count} views fused on {grid} nodes, {length(scan.shape.spacing)} apart, in "
        f"{seconds:.1f} s",
        f"volume {scan.shape.volume():.4g} m3; {100.0 * scan.seen:.1f} % of the surface seen, "
        f"{100.0 * scan.overlap:.1f} % of that twice; "
        f"views agree to {length(scan.disagreement, 2)}",
        *(f"- {line}" for line in scan.advice),
        f"files: {path} (pliant simulate SCENE --shape {path}), {picture}",
    ]
    answer(result, lines, as_json=as_json)


def _plane(text: str | None) -> Any:
    if text is None:
        return None
    if text.strip().lower() == "auto":
        return True
    try:
        numbers = [float(x) for x in text.split(",")]
        if len(numbers) != 4:
            raise ValueError
    except ValueError:
        raise BadInput(f"--table must be auto or four numbers NX,NY,NZ,D, not '{text}'.") from None
    return numbers[:3], numbers[3]
