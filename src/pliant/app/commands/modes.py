"""`pliant modes`: natural frequencies of a scene."""

from typing import Annotated

import typer

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import find_description
from pliant.app.folders.run_directory import open_scene
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("modes")(list_modes)


@command
def list_modes(
    scene: SceneArgument,
    count: Annotated[int, typer.Option("--count", help="How many of the lowest modes.")] = 6,
    shape: ShapeOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Natural frequencies of SCENE about its rest shape."""
    from pliant.dynamics.modes import modes

    fineness = Fineness(spacing, cells_across)
    description = fineness.of(find_description(scene, shape=shape))
    set_machine(device, threads)
    built = require_elastic(open_scene(description, None, scene), "pliant modes")
    found = modes(built, count)
    result = {
        "title": (built.source or {}).get("title", ""),
        "nodes": len(built.body.nodes),
        "frequencies": found.frequencies.tolist(),
    }
    lines = [f"{i + 1:3d}  {f:.6g} Hz" for i, f in enumerate(found.frequencies)]
    answer(result, lines, as_json=as_json)
