"""`pliant play`: a compressed film as a folder of observations again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pliant.app.commands.observe import require_free
from pliant.app.terminal.console import (
    DeviceOption,
    JsonOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.progress import progress
from pliant.core.lengths import length


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("play")(play_film)


@command
def play_film(
    film: Annotated[
        str, typer.Argument(metavar="FILE", help="What `pliant compress` wrote, an .npz file.")
    ],
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="The folder; runs/FILE-played if not given."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace observations that are there already.")
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Simulate the scene of a compressed film, add what it left, and write the recording."""
    from pliant.app.folders.compressed_film import play
    from pliant.observe.files import save_observations

    folder = Path(out or Path("runs") / f"{Path(film).stem}-played")
    require_free(folder, overwrite=overwrite)
    set_machine(device, threads)
    with progress("playing (per cent)", 100) as shown:
        found = play(film, progress=lambda done, total: shown.reach(100 * done // max(total, 1)))
    layout = "npz" if found.image_steps is None else "depth"
    scale = {} if found.image_steps is None else {"depth_scale": found.image_steps}
    save_observations(found.seen, folder, layout, **scale)
    result: dict[str, Any] = {
        "out": str(folder),
        "layout": layout,
        "frames": len(found.seen.frames),
        "cameras": len(found.seen.cameras),
        "points": found.seen.point_count,
        "error": found.error,
        "drift": found.drift,
    }
    lines = [
        f"{len(found.seen.frames)} frames, {found.seen.point_count} points, each within "
        f"{length(found.error + found.drift)} of the recording",
        f"files in {folder}; next: pliant reconstruct SCENE --observations {folder}",
    ]
    answer(result, lines, as_json=as_json)
