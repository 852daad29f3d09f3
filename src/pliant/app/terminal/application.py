"""The command line as typer sees it; each command is a module of app.commands (command_table)."""

from typing import Annotated

import typer

import pliant
from pliant.app.terminal.command_table import CommandTable

app = typer.Typer(
    name="pliant",
    cls=CommandTable,
    help="Elastic bodies: simulate them, and find out what they are made of.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
