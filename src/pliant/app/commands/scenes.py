"""`pliant scenes`: what is built in."""

import typer

from pliant.app.console import JsonOption, answer, command
from pliant.app.scenes import scene_names, scene_summary


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scenes")(list_scenes)


@command
def list_scenes(as_json: JsonOption = False) -> None:
    """List the built-in scenes."""
    found = {name: scene_summary(name) for name in scene_names()}
    width = max(map(len, found))
    lines = [f"{name:<{width}}  {summary}" for name, summary in found.items()]
    answer({"scenes": found}, lines, as_json=as_json)
