"""The command line: `pliant COMMAND`. Each command is a module of app.commands."""

import sys
from typing import Annotated

import typer

import pliant
from pliant.app.commands import (
    bench,
    check_gradients,
    demo,
    export,
    landscape,
    modes,
    observe,
    reconstruct,
    render,
    scenes,
    simulate,
    static,
    view,
)
from pliant.app.console import BAD_INPUT

app = typer.Typer(
    name="pliant",
    help="Elastic bodies: simulate them, and find out what they are made of.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for module in (demo, scenes, simulate, static, modes, observe, reconstruct, landscape,
               check_gradients, bench, view, render, export):  # fmt: skip
    module.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(pliant.__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `pliant` command."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="pliant", standalone_mode=False)
    except Exception as error:
        # a wrong option or argument; typer carries its own copy of click, so no class to name
        if not hasattr(error, "format_message"):
            raise
        message = " ".join(str(error.format_message()).split())  # type: ignore[attr-defined]
        sys.stderr.write(f"pliant: {message} (see pliant --help)\n")
        sys.exit(BAD_INPUT)
    sys.exit(code if isinstance(code, int) else 0)
