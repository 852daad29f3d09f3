"""`pliant modes`: natural frequencies of a scene."""

from typing import Annotated

import typer

from pliant.app.console import (
    DeviceOption,
    JsonOption,
    SceneArgument,
    ShapeOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.scene_files import build_scene
from pliant.app.scenes import find_description


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("modes")(list_modes)


@command
def list_modes(
    scene: SceneArgument,
    count: Annotated[int, typer.Option("--count", help="How many of the lowest modes.")] = 6,
    shape: ShapeOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Natural frequencies of SCENE about its rest shape."""
    from pliant.dynamics.modes import modes

    description = find_description(scene, shape=shape)
    set_machine(device, threads)
    built = build_scene(description, name=scene)
    found = modes(built, count)
    result = {
        "title": (built.source or {}).get("title", ""),
        "nodes": len(built.body.nodes),
        "frequencies": found.frequencies.tolist(),
    }
    lines = [f"{i + 1:3d}  {f:.6g} Hz" for i, f in enumerate(found.frequencies)]
    answer(result, lines, as_json=as_json)
