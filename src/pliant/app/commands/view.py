"""`pliant view`: the editor and viewer in a browser."""

import json
import signal
import threading
from typing import Annotated

import typer

from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import ShapeFile
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    ShapeOption,
    ShapeUnitsOption,
    SpacingOption,
    ThreadsOption,
    command,
    note,
    say,
    set_machine,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("view")(view)


@command
def view(
    target: Annotated[
        str,
        typer.Argument(
            metavar="SCENE|DIR",
            help="A built-in scene or TOML file to edit, a run to play, a fit to inspect.",
        ),
    ] = "torus",
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    folder: Annotated[
        str | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where files are opened, uploaded and saved; the scene's own folder if not given.",
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0: any free one.")] = 0,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address to listen on. Anything but 127.0.0.1 lets other machines in: only they "
            "who know the token, but unencrypted.",
        ),
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    dark: Annotated[
        bool, typer.Option("--dark/--light", help="The page's theme; in the View tab it changes.")
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Edit SCENE, or look at what is in DIR, in a browser; Ctrl-C ends it."""
    from pliant.app.editor.editor import Editor
    from pliant.app.editor.opening import open_target
    from pliant.app.editor.requests import is_loopback
    from pliant.core.errors import BadInput

    if not 0 <= port <= 65535:
        raise BadInput(f"--port must lie between 0 and 65535, not {port}.")
    if not host.strip():  # the empty name means every address of the machine
        raise BadInput("--host needs an address, for example 127.0.0.1.")
    set_machine(device, threads)
    opened = open_target(
        target, shape=ShapeFile.asked(shape, shape_units), folder=folder,
        fineness=Fineness(spacing, cells_across),
    )  # fmt: skip
    if not is_loopback(host):
        note(
            f"Warning: listening on {host}: whoever learns the address with its token can use the "
            "editor, read and write its folder, and nothing is encrypted. Prefer an SSH tunnel."
        )
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    editor = Editor(opened, host=host, port=port, device=device, threads=threads, dark=dark)
    editor.start()
    try:
        if as_json:
            say(json.dumps({
                "address": editor.address, "port": editor.proxy.port, "kind": opened.kind,
                "folder": str(opened.folder),
            }))  # fmt: skip
        else:
            say(f"{opened.kind}: {editor.address}")
            note("The token in the address is the key; Ctrl-C ends.")
        if browser:
            editor.open_browser()
        while not done.wait(0.5):
            pass
    finally:
        editor.stop()
