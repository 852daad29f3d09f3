"""Keys of the editor's page; the page lists them, too (Ctrl-K)."""

from collections.abc import Callable
from typing import Any

KEYS: tuple[tuple[str, str, str | None, str], ...] = (
    ("Play or pause", "space", None, "Play"),
    ("Previous frame", "arrowleft", None, "Back"),
    ("Next frame", "arrowright", None, "Forth"),
    ("First frame", "home", None, "First"),
    ("Last frame", "end", None, "Last"),
    ("Undo the last edit", "Z", "cmd/ctrl", "Undo"),
    ("Redo it", "Z", "cmd/ctrl+shift", "Redo"),
)
"""What it does, the key, what is held with it, the order."""

OF_EDITS = ("Undo", "Redo")


def bind_keys(gui: Any, do: Callable[[str], None], *, edits: bool) -> list[Any]:
    """do(order) when a key is pressed; edits: whether there is anything to undo."""
    handles = []
    for label, key, modifier, order in KEYS:
        if order in OF_EDITS and not edits:
            continue

        async def pressed(event: Any, order: str = order) -> None:
            do(order)

        handle = gui.add_command(label, hotkey=key, modifier=modifier)
        handle.on_trigger(pressed)
        handles.append(handle)
    return handles
