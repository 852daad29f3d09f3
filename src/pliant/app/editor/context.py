"""What the panels share: the page, the session, the simulation, and how to talk to the person."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pliant.app.editor.desk import Desk
from pliant.app.editor.session import Session
from pliant.app.editor.simulation import Simulation
from pliant.app.editor.viewport import Viewport


class Panel(Protocol):
    """A part of the page that shows the session and edits it."""

    def refresh(self) -> None:
        """Show the session as it is now."""


@dataclass
class Context:
    """server: viser's; say(text), complain(text): shown in the page.

    Callbacks are async because viser calls those in the order of the page's messages; plain ones
    run in a pool of threads and overtake each other.
    """

    server: Any
    desk: Desk
    session: Session
    simulation: Simulation
    viewport: Viewport
    say: Callable[[str], None]
    complain: Callable[[str], None]
    panels: list[Panel] = field(default_factory=list)

    @property
    def gui(self) -> Any:
        """viser's GUI."""
        return self.server.gui

    @property
    def folder(self) -> Path:
        """The folder of files."""
        return self.session.folder

    def on_change(self, handle: Any, do: Callable[[Any], None]) -> None:
        """do(value) in the desk's thread when a person (not the editor) has changed an input."""

        async def changed(event: Any) -> None:
            if event.client_id is not None:
                value = handle.value  # by the desk's turn another order may have shown its own
                self.desk.post(lambda: do(value), key=id(handle))

        handle.on_update(changed)

    def on_click(self, handle: Any, do: Callable[[Any], None]) -> None:
        """do(client) in the desk's thread when a button was pressed."""

        async def clicked(event: Any) -> None:
            self.desk.post(lambda: do(event.client))

        handle.on_click(clicked)

    def on_choice(self, group: Any, do: Callable[[str], None]) -> None:
        """do(label) in the desk's thread when a button of a group was pressed."""

        async def chosen(event: Any) -> None:
            label = event.target.value  # by the desk's turn it may be another one
            self.desk.post(lambda: do(label))

        group.on_click(chosen)

    def on_upload(self, button: Any, do: Callable[[Any], None]) -> None:
        """do(file) in the desk's thread when a file has arrived."""

        async def arrived(event: Any) -> None:
            file = event.target.value
            self.desk.post(lambda: do(file))

        button.on_upload(arrived)

    def refresh(self) -> None:
        """Every panel shows the session as it is now."""
        for panel in self.panels:
            panel.refresh()
