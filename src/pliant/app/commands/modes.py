"""`pliant modes`: natural frequencies of a scene, and pictures of the modes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import ShapeFile, find_description
from pliant.app.folders.run_directory import open_scene
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    SceneArgument,
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

RESULT, SHAPES = "modes.json", "modes.npz"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("modes")(list_modes)


@command
def list_modes(
    scene: SceneArgument,
    count: Annotated[int, typer.Option("--count", help="How many of the lowest modes.")] = 6,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="DIR", help="Leave a picture and a film of each mode, and the shapes."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace modes that are there already.")
    ] = False,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Natural frequencies of SCENE about its rest shape."""
    from pliant.dynamics.modes import modes

    fineness = Fineness(spacing, cells_across)
    folder = None if out is None else _usable(Path(out), overwrite=overwrite)
    description = fineness.of(find_description(scene, shape=ShapeFile.asked(shape, shape_units)))
    set_machine(device, threads)
    built = require_elastic(open_scene(description, None, scene), "pliant modes")
    with progress(f"modes of {scene}", count) as shown:
        found = modes(
            built, count,
            progress=lambda done, of, left: shown.reach(
                count - of + done, f"residual {left:.1e}"
            ),
        )  # fmt: skip
    result: dict[str, Any] = {
        "title": (built.source or {}).get("title", ""),
        "nodes": len(built.body.nodes),
        "frequencies": found.frequencies.tolist(),
    }
    lines = [f"{i + 1:3d}  {f:.6g} Hz" for i, f in enumerate(found.frequencies)]
    if folder is not None:
        result["out"] = str(folder)
        result["files"] = _leave(built, found, folder, result)
        lines.append(f"files in {folder}: mode_01.png, mode_01.gif and so on, {SHAPES}")
    answer(result, lines, as_json=as_json)


def _usable(folder: Path, *, overwrite: bool) -> Path:
    """Refuse a place for the files that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    if (folder / RESULT).exists():
        if not overwrite:
            raise BadInput(f"{folder}: holds modes already; choose another --out or --overwrite.")
    elif folder.is_dir() and any(folder.iterdir()):
        raise BadInput(f"{folder}: the folder is not empty; choose another --out.")
    require_writable(folder)
    return folder


def _leave(built: Any, found: Any, folder: Path, result: dict[str, Any]) -> list[str]:
    """Pictures and films, shapes (count, nodes, dim) as arrays, and last what came out."""
    from pliant.app.folders.array_files import write_arrays
    from pliant.app.pictures.mode_pictures import draw_modes
    from pliant.core.files import write_json

    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT).unlink(missing_ok=True)
    for old in folder.glob("mode_*.*"):
        old.unlink()
    files = [SHAPES]
    write_arrays(
        folder / SHAPES, frequencies=found.frequencies, shapes=found.shapes,
        nodes=built.body.nodes,
    )  # fmt: skip
    with progress("drawing", len(found.frequencies)) as shown:
        for i, names in enumerate(draw_modes(built, found, folder)):
            files += names
            shown.reach(i + 1)
    write_json(folder / RESULT, result | {"files": files})
    return files
