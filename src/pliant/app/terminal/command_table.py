"""The commands by name, each a module of app.commands that is imported when it is called.

The list of commands, the version and the completion of a name need none of them: what a command
stands on (Warp, SciPy, Matplotlib) takes seconds to import.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from pliant.app.terminal.help_text import HelpfulCommand, HelpfulGroup

COMMANDS = {
    "demo": "Film a swinging torus with ten noisy depth cameras and recover what it is made of.",
    "scenes": "List the built-in scenes; with NAME print one as TOML, to be changed: "
    "scenes bar > my.toml",
    "simulate": "Simulate SCENE; an interrupted run of the same scene in DIR is continued.",
    "compare": "Run SCENE under several models and tell how far each is from finite elements.",
    "static": "Find where SCENE comes to rest.",
    "modes": "Natural frequencies of SCENE about its rest shape.",
    "observe": "Film SCENE, or the run in DIR, with a ring of depth cameras.",
    "reconstruct": "Recover unknown values of SCENE from a recording; an interrupted fit in DIR is "
    "continued.",
    "predict": "Foretell a recording of another scene with the material that the fit in FIT found.",
    "fit-curve": "Fit laws to the stress and stretch that a test machine recorded in FILE, and "
    "rank them.",
    "scan": "Fuse the depth frames in FOLDER, of a body at rest, to a closed shape.",
    "compress": "Store a recording as the scene that explains it and what is left, within a "
    "largest error.",
    "play": "Simulate the scene of a compressed film, add what it left, and write the recording.",
    "texture": "Map the colour images of a recording back to the body and fuse them, finer than "
    "one image.",
    "landscape": "Map the cost of SCENE over two unknowns and draw the path of a fit into it.",
    "check-gradients": "Compare adjoint, tangent, complex step and central difference of SCENE's "
    "cost, per unknown.",
    "bench": "Measure the time of a step of a benchmark CASE.",
    "view": "Edit SCENE, or look at what is in DIR, in a browser; Ctrl-C ends it.",
    "render": "Draw the run in DIR, or SCENE after simulating it, as a picture or a film.",
    "export": "Write the run in DIR, or SCENE after simulating it, in a format of other programs.",
}
"""What the list of commands says: the first paragraph of each command's own help."""


class _Commands(typer.Typer):
    """Where a module registers its command."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        return super().command(name, **{"cls": HelpfulCommand, **options})


def load(name: str) -> Any:
    """The command itself."""
    module = import_module(f"pliant.app.commands.{name.replace('-', '_')}")
    alone = _Commands()
    alone.callback()(lambda: None)  # a group, so that its one command keeps its name
    module.register(alone)
    return typer.main.get_group(alone).commands[name]


class CommandTable(HelpfulGroup):
    """A group whose commands are known by their summaries until one is called."""

    def __init__(self, **attributes: Any):
        super().__init__(**attributes)
        for name, summary in COMMANDS.items():
            self.add_command(TyperCommand(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that is called, or whose options are completed."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load(name or ""), rest
