"""`pliant compare`: one scene under several models, side by side."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pliant.app.commands.observe import StepsOption
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    SceneArgument,
    ShapeOption,
    SpacingOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.core.errors import BadInput

RESULT = "compare.json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare_models)


@command
def compare_models(
    scene: SceneArgument,
    chosen: Annotated[
        str, typer.Option("--models", metavar="A,B,C", help="Models beside finite elements.")
    ] = "position-based,shape-matching",
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Leave compare.png, compare.gif and the table."),
    ] = None,
    steps: StepsOption = None,
    shape: ShapeOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Run SCENE under several models and tell how far each is from finite elements."""
    from pliant.app.describing.elastic_scenes import require_elastic
    from pliant.app.describing.fineness import Fineness
    from pliant.app.describing.scenes import ShapeFile, find_description
    from pliant.app.folders.comparing import chosen_models, compare
    from pliant.app.folders.films import steps_of
    from pliant.app.folders.run_directory import open_scene
    from pliant.app.terminal.progress import progress
    from pliant.core.files import write_json

    folder = None if out is None else Path(out)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    names = chosen_models(chosen)
    file = ShapeFile.asked(shape)
    description = Fineness(spacing, cells_across).of(find_description(scene, shape=file))
    set_machine(device, threads)
    built = require_elastic(open_scene(description, None, scene), "pliant compare")
    count = steps_of(built, steps)
    if count < 1:
        raise BadInput(f"A comparison needs at least one step, not {count}.")
    with progress(f"comparing {scene}", count * (1 + len(names))) as shown:
        done: dict[str, int] = {}

        def reach(name: str, step: int) -> None:
            done[name] = step
            shown.reach(sum(done.values()), name)

        found = compare(built, names, count, progress=reach)
    result: dict[str, Any] = {
        "title": (built.source or {}).get("title", ""),
        "nodes": len(built.body.nodes),
        "dt": built.dt,
        "models": [one.row() for one in found],
    }
    lines = [f"{'model':<18}{'ms a step':>11}{'tip mean':>11}{'largest':>11}{'apart':>9}"]
    for one in found:
        lines.append(
            f"{one.model:<18}{one.step_ms:>11.3g}{one.tip.mean():>11.4g}{one.tip.max():>11.4g}"
            f"{one.share:>9.1%}{'  stopped: ' + one.stopped if one.stopped else ''}"
        )
    lines.append(
        f"apart: from the run of {found[0].model}, root mean square over its own displacement"
    )
    if folder is not None:
        from pliant.app.pictures.compare_pictures import draw_compared

        folder.mkdir(parents=True, exist_ok=True)
        result["files"] = draw_compared(found, folder)
        result["out"] = str(folder)
        write_json(folder / RESULT, result)
        lines.append(f"files in {folder}: {', '.join([*result['files'], RESULT])}")
    answer(result, lines, as_json=as_json)
