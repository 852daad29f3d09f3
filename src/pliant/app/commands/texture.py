"""`pliant texture`: the colours of a recording, fused on the body that it shows."""

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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("texture")(fuse_texture)


@command
def fuse_texture(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="FIT|SCENE", help="The folder of a finished fit, a TOML file or a scene's name."
        ),
    ],
    observations: Annotated[
        str | None,
        typer.Option(
            "--observations",
            metavar="DIR",
            help="The recording, with images in DIR/colour; a fit's own if not given.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="The painted, moving body: .glb or .gltf.")
    ] = "texture.glb",
    units: UnitsOption = None,
    frame_rate: FrameRateOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Map the colour images of a recording back to the body and fuse them, finer than one image."""
    from pliant.app.fitted.explained import explained
    from pliant.app.folders.painting import paint
    from pliant.app.formats.gltf import write_gltf
    from pliant.app.pictures.texture_picture import draw_texture

    path = Path(out)
    if path.suffix.lower() not in (".glb", ".gltf"):
        raise BadInput(f"{path}: painted bodies are written as .glb or .gltf.")
    require_free_file(path, overwrite=overwrite)
    set_machine(device, threads)
    told = explained(
        subject, observations, fineness=Fineness(spacing, cells_across), units=units,
        frame_rate=frame_rate,
    )  # fmt: skip
    with progress("painting (per cent)", 100) as shown:
        found = paint(
            told.scene, told.seen, told.folder, sighting=told.sighting,
            progress=lambda done, total: shown.reach(100 * done // max(total, 1)),
        )  # fmt: skip
    picture = path.with_suffix(".png")
    write_gltf(path, found.motion, name=path.stem)
    draw_texture(found, picture)
    texture = found.texture
    result: dict[str, Any] = {
        "out": str(path),
        "picture": str(picture),
        "frames": len(found.times),
        "images": texture.views,
        "pixels": texture.pixels,
        "vertices": len(texture.colours),
        "coverage": found.coverage,
        "residual": texture.noise,
    }
    lines = [
        f"{texture.views} images, {texture.pixels} pixels on {len(texture.colours)} points, "
        f"{100.0 * found.coverage:.0f} % of the surface seen; half of the pixels are within "
        f"{100.0 * texture.noise:.2g} % of white",
        f"files: {path}, {picture}",
    ]
    answer(result, lines, as_json=as_json)
