"""The bar at the top: play, pause, step, reset; the frame shown; the tip; messages."""

from collections.abc import Callable

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.history import Frame

DRAWN_SECONDS = 1.0 / 30.0
PLOT_SECONDS = 0.5


class TimelinePanel:
    """Shows a frame; on_shown(frame) tells the others."""

    def __init__(self, context: Context):
        self.context = context
        gui = context.gui
        buttons = ("Play", "Pause", "Step", "Reset")
        self.run = gui.add_button_group("Run", buttons)
        self.frame = gui.add_slider(
            "Frame", 0, 1, 1, 0, hint="Drag to look at an earlier frame; Play goes on at the end."
        )
        self.status = gui.add_markdown("")
        self.message = gui.add_markdown("")
        self.shown: Frame | None = None
        self.on_shown: Callable[[Frame | None], None] = lambda frame: None
        self.on_run: Callable[[str], None] = lambda order: None
        self._tip = 0
        context.on_choice(self.run, lambda order: self.on_run(order))
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
        """The line under the slider."""
        frame, running = self.shown, self.context.simulation.running
        state = "playing" if running else "paused"
        t = 0.0 if frame is None else frame.t
        tip = 0.0 if frame is None else self.tip_displacement(frame.u)
        rate = ""
        if frame is not None and running and self.rate > 0.0:
            rate = f", {self.rate:.0f} frames/s"
        self.status.content = (
            f"t = **{t:.3f} s**, tip displacement **{tip:.4f} m** *({state}{rate})*"
        )

    rate = 0.0

    def _scrub(self, value: int) -> None:
        history = self.context.session.history
        if self.context.simulation.running:
            self.context.simulation.pause()
        if len(history):
            index = int(np.clip(value, 0, len(history) - 1))
            self.show(history[index], index)
