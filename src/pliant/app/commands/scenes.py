"""`pliant scenes`: what is built in, and the scene file of one of them."""

from typing import Annotated

import typer

from pliant.app.describing.scene_files import scene_text
from pliant.app.describing.scenes import find_builtin, scene_names, scene_summary
from pliant.app.terminal.console import JsonOption, answer, command


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scenes")(list_scenes)


@command
def list_scenes(
    name: Annotated[
        str | None, typer.Argument(help="Print this one as TOML.", metavar="[NAME]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the built-in scenes; with NAME print one as TOML, to be changed: scenes bar > my.toml"""
    if name is not None:
        description = find_builtin(name)
        answer({"scene": description}, scene_text(description).splitlines(), as_json=as_json)
        return
    found = {name: scene_summary(name) for name in scene_names()}
    width = max(map(len, found))
    lines = [f"{name:<{width}}  {summary}" for name, summary in found.items()]
    answer({"scenes": found}, lines, as_json=as_json)
