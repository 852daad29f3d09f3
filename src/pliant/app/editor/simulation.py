"""The editor's end of the simulation: starts the worker, keeps it up to date, takes its frames.

The worker lives from the first order until the last page has gone; what it had reached is kept, so
that another one goes on from there.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.app.editor.child import Child
from pliant.app.editor.desk import Desk
from pliant.app.editor.history import Frame
from pliant.app.editor.session import Session
from pliant.app.editor.worker import work

LIVE_TOLERANCE = 1e-5
"""Relative residual of a live run's solves: finer ones cost half the frames and cannot be seen."""


class Simulation:
    """Orders: play, pause, step, reset, pull, release.

    on_frame, on_state(text), on_failure(sentence), on_notice(sentence): in the desk's thread.
    """

    def __init__(self, session: Session, desk: Desk, *, device: str, threads: int | None):
        self._session, self._desk = session, desk
        self._machine = (device, threads)
        self._child: Child | None = None
        self._sent: tuple[int, Any] = (-1, None)
        self._kept: Any = None
        self.running = False
        self.on_frame: Callable[[Frame], None] = lambda frame: None
        self.on_state: Callable[[], None] = lambda: None
        self.on_failure: Callable[[str], None] = lambda sentence: None
        self.on_notice: Callable[[str], None] = lambda sentence: None
        session.listeners.append(self._scene_changed)

    @property
    def pid(self) -> int | None:
        """The worker's process number, None if there is none."""
        return self._child.pid if self._child is not None and self._child.alive else None

    def warm_up(self) -> None:
        """Start the worker and hand it the scene, so that the first step comes at once."""
        self._up_to_date()

    def play(self) -> None:
        """Run until paused."""
        self._up_to_date()
        self._order("play")

    def pause(self) -> None:
        """Stop after the step at hand."""
        self._order("pause")

    def step(self) -> None:
        """One step."""
        self._up_to_date()
        self._order("step")

    def reset(self) -> None:
        """Back to the start: the scene's own initial state."""
        self._kept = None
        self._session.history.clear()
        if self._child is not None:
            self._order("pause")
            self._order("reset")
        self.on_state()

    def set_speed(self, value: float) -> None:
        """Simulated seconds a second, at most."""
        self._speed = value
        self._order("speed", value)

    def set_tolerance(self, value: float | None) -> None:
        """Loosen the linear solves of the live run to this; None: the scene's own."""
        self._tolerance = value
        if self._child is not None:
            self._up_to_date()

    def pull(self, point: int, target: np.ndarray, strength: float) -> None:
        """Pull a surface point towards a target [m]."""
        self._order("pull", (point, target, strength))

    def release(self) -> None:
        """Let go."""
        self._order("release")

    def stop(self) -> None:
        """End the worker."""
        child, self._child = self._child, None
        if child is not None:
            child.send(("pause", None))
            child.stop(("quit", None))
        self._sent = (-1, None)
        self._set_running(False)

    _speed = 1.0
    _tolerance: float | None = LIVE_TOLERANCE

    def _live(self) -> dict[str, Any]:
        """The description that the worker gets."""
        description = self._session.description
        if self._tolerance is None:
            return description
        return {**description, "tolerance": max(description["tolerance"], self._tolerance)}

    def _order(self, name: str, value: Any = None) -> None:
        if self._child is not None:
            self._child.send((name, value))

    def _up_to_date(self) -> None:
        if self._child is None or not self._child.alive:
            child: list[Child] = []

            def receive(message: Any) -> None:
                self._desk.post(lambda: self._receive(child[0], message))

            self._child = Child(work, *self._machine, receive=receive, name="pliant-worker")
            child.append(self._child)
            self._sent = (-1, None)
        s = self._session
        live = self._live()
        if self._sent == (s.body_number, live):
            return
        same_body = self._sent[0] == s.body_number
        start = None
        if not same_body and self._kept is not None and self._kept[0] == s.body_number:
            start = self._kept[1]
        # without its shape: a triangle mesh holds handles that do not travel
        body = None if same_body else replace(s.body, shape=None)
        self._order("scene", (live, body, start))
        self._order("speed", self._speed)
        self._sent = (s.body_number, live)

    def _scene_changed(self, what: str) -> None:
        if what == "body":
            self._kept = None
            if self.running:
                self._order("pause")
            if self._child is not None:
                self._up_to_date()
        elif self._child is not None:
            self._up_to_date()

    def _receive(self, child: Child, message: Any) -> None:
        if message is None:
            self._ended(child)
            return
        if child is not self._child and message[0] != "kept":
            return
        name, value = message
        if name == "frame":
            if value.u.shape == self._session.body.nodes.shape:  # else of the body before
                self._session.history.append(value)
                self.on_frame(value)
        elif name == "kept":
            self._kept = (self._session.body_number, value)
        elif name == "restarted":
            self._session.history.clear()
            self.on_state()
        elif name == "failed":
            self.on_failure(value)
        elif name == "notice":
            self.on_notice(value)
        elif name == "state":
            self._set_running(value == "running")

    def _ended(self, child: Child) -> None:
        if child is self._child:  # nobody told it to
            self._child = None
            self._set_running(False)
            self.on_failure("The simulation's process ended unexpectedly: press Play again.")

    def _set_running(self, running: bool) -> None:
        if running != self.running:
            self.running = running
            self.on_state()
