"""How the browser is told where to go without the token in the list of processes.

A browser is started as a program with the address among its arguments, which every user of the
machine can read. So it is given a file that only this user can read, and the file leads on, with a
token that is good for one visit.
"""

import html
import os
from pathlib import Path

NAME = "open-pliant.html"


def write_redirect(folder: Path, address: str) -> Path:
    """A page, readable by this user only, that leads to an address; folder: private as well."""
    path = folder / NAME
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    place = html.escape(address, quote=True)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(
            "<!doctype html><meta charset=utf-8><title>Pliant</title>"
            '<meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={place}">'
            f'<p><a href="{place}">Open the editor</a></p>'
        )
    return path


def open_browser(folder: Path, address: str) -> None:
    """Show the page of an address in the user's browser."""
    import webbrowser

    webbrowser.open(write_redirect(folder, address).as_uri())
