"""`pliant compress`: a depth film as the scene that explains it and what is left."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pliant.app.commands.render import OverwriteOption, require_free_file
from pliant.app.describing.fineness import Fineness
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    SpacingOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.film_options import FrameRateOption, UnitsOption
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.lengths import length


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compress")(compress_film)


@command
def compress_film(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="FIT|SCENE", help="The folder of a finished fit, a TOML file or a scene's name."
        ),
    ],
    observations: Annotated[
        str | None,
        typer.Option(
            "--observations", metavar="DIR", help="The recording; a fit's own if not given."
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="The compressed film, an .npz file.")
    ] = "film.npz",
    error: Annotated[
        str,
        typer.Option("--error", help="Largest error of a depth: 1mm, 0.001; 0 keeps images whole."),
    ] = "1mm",
    units: UnitsOption = None,
    frame_rate: FrameRateOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Store a recording as the scene that explains it and what is left, within a largest error."""
    from pliant.app.fitted.explained import explained
    from pliant.app.folders.compressed_film import compress
    from pliant.app.folders.films import length_in_metres
    from pliant.app.pictures.residual_picture import draw_residual
    from pliant.observe.depth_png import image_files
    from pliant.observe.files import image_steps

    path = Path(out)
    if path.suffix != ".npz":
        raise BadInput(f"{path}: films are compressed to .npz, change the ending of --out.")
    require_free_file(path, overwrite=overwrite)
    largest = length_in_metres("--error", error)
    set_machine(device, threads)
    told = explained(
        subject, observations, fineness=Fineness(spacing, cells_across), units=units,
        frame_rate=frame_rate,
    )  # fmt: skip
    folder = told.folder
    steps = image_steps(folder, told.units)
    with progress("compressing (per cent)", 100) as shown:
        try:
            found = compress(
                told.scene, told.seen, path, error=largest, image_steps=steps,
                sighting=told.sighting,
                progress=lambda done, total: shown.reach(100 * done // max(total, 1)),
            )  # fmt: skip
        except BadInput as complaint:
            raise BadInput(f"{folder}: {complaint}") from complaint
    picture = path.with_suffix(".png")
    draw_residual(found, picture)
    files = [image for images in image_files(folder) for image in images]
    images = sum(image.stat().st_size for image in files) if steps is not None else None
    before = found.bytes_raw if images is None else images
    result: dict[str, Any] = {
        "out": str(path),
        "picture": str(picture),
        "frames": found.frames,
        "points": found.points,
        "bytes_before": before,
        "before": "raw 16-bit images" if images is None else "depth PNGs",
        "bytes_raw": found.bytes_raw,
        "bytes_after": found.bytes_after,
        "bytes_scene": found.scene_bytes,
        "ratio": before / found.bytes_after,
        "error": found.error,
        "largest_error": found.largest,
        "residual": found.spread,
        "predicted": found.predicted,
    }
    lines = [
        f"{found.frames} frames, {found.points} points: {before} bytes ({result['before']}) are "
        f"{found.bytes_after} now, {result['ratio']:.3g} times fewer; {found.scene_bytes} of them "
        "are the scene",
        f"largest error {length(found.largest)} of {length(found.error)}; the scene explains "
        f"{100.0 * found.predicted:.1f} % of the points to {length(found.spread)}",
        f"files: {path} (pliant play {path} --out DIR), {picture}",
    ]
    answer(result, lines, as_json=as_json)
