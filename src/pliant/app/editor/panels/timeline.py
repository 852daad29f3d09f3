"""The bar at the top: play, pause, step, reset; the frame shown; the tip; messages."""

import html
from collections.abc import Callable

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.history import Frame

DRAWN_SECONDS = 1.0 / 30.0
PLOT_SECONDS = 0.5
EDITS = ("Undo", "Redo")

ROOM = 3.6
"""Height kept for messages, in letters: two lines; longer ones can be scrolled."""


def _room(text: str, *, warning: bool = False) -> str:
    words = html.escape(text)
    words = f"<b>⚠ {words}</b>" if warning else words
    return (
        f'<div class="pliant-message" role="status" style="height:{ROOM}em;overflow-y:auto;'
        f'margin:0 0.6em;font-size:0.85em;line-height:1.5">{words}</div>'
    )


class TimelinePanel:
    """Shows a frame; on_shown(frame) tells the others."""

    def __init__(self, context: Context, *, edits: bool = False):
        self.context = context
        gui = context.gui
        buttons = ("Play", "Pause", "Step", "Reset")
        self.run = gui.add_button_group("Run", buttons)
        self.frame = gui.add_slider(
            "Frame", 0, 1, 1, 0, hint="Drag to look at an earlier frame; Play goes on at the end."
        )
        self.edit = gui.add_button_group("Edit", EDITS) if edits else None
        self.status = gui.add_markdown("")
        self.message = gui.add_html(_room(""))
        self.told = ""
        self.is_playing: Callable[[], bool] = lambda: context.simulation.running
        self.shown: Frame | None = None
        self.on_shown: Callable[[Frame | None], None] = lambda frame: None
        self.on_run: Callable[[str], None] = lambda order: None
        self._tip = 0
        context.on_choice(self.run, lambda order: self.on_run(order))
        if self.edit is not None:
            context.on_choice(self.edit, lambda order: self.on_run(order))
        context.on_change(self.frame, self._scrub)

    def refresh(self) -> None:
        """A new scene: watch its tip."""
        session = self.context.session
        self._tip = session.tip()
        if self.shown is not None and self.shown.u.shape != session.body.nodes.shape:
            self.shown = None
        self.show_status()

    def tip_displacement(self, u: np.ndarray) -> float:
        """How far the tip has moved [m]."""
        points = self.context.session.body.surface.points
        at = points.weights[self._tip] @ u[points.nodes[self._tip]]
        return float(np.linalg.norm(at))

    def measure(self, frame: Frame) -> None:
        """Add the tip's displacement to a frame's numbers."""
        frame.numbers["tip"] = self.tip_displacement(frame.u)

    def show(self, frame: Frame | None, index: int | None = None) -> None:
        """Draw a frame; index: its place in the history."""
        self.shown = frame
        self.context.viewport.draw(None if frame is None else frame.u)
        count = len(self.context.session.history)
        if self.frame.max != max(count - 1, 1):
            self.frame.max = max(count - 1, 1)
        self.frame.value = 0 if index is None else index
        self.show_status()
        self.on_shown(frame)

    def show_last(self) -> None:
        """Draw the end of the history, or the rest state."""
        history = self.context.session.history
        if len(history):
            self.show(history[-1], len(history) - 1)
        else:
            self.show(None)

    def show_status(self) -> None:
        """The line under the slider: "paused" only where something was begun and stands still."""
        frame, running = self.shown, self.is_playing()
        state = "playing" if running else "at rest" if frame is None else "paused"
        t = 0.0 if frame is None else frame.t
        tip = 0.0 if frame is None else self.tip_displacement(frame.u)
        rate = ""
        if frame is not None and self.context.simulation.running and self.rate > 0.0:
            rate = f", {self.rate:.0f} frames/s"
        self.status.content = (
            f"t = **{t:.3f} s**, tip displacement **{tip:.4f} m** *({state}{rate})*"
        )

    rate = 0.0

    def say(self, text: str, *, warning: bool = False) -> None:
        """A message in the room that is kept for it: nothing below moves. "" removes it."""
        if text != self.told:
            self.told = text
            self.message.content = _room(text, warning=warning)

    def go(self, steps: int) -> None:
        """Show the frame so many steps on from the one shown (a large number: the last)."""
        count = len(self.context.session.history)
        if count:
            self._scrub(int(np.clip(int(self.frame.value) + steps, 0, count - 1)))

    def _scrub(self, value: int) -> None:
        history = self.context.session.history
        if self.context.simulation.running:
            self.context.simulation.pause()
        if len(history):
            index = int(np.clip(value, 0, len(history) - 1))
            self.show(history[index], index)
