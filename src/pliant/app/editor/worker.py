"""The simulation, in a process of its own: takes orders, sends frames.

Orders are (name, value) pairs: scene, play, pause, step, reset, speed, pull, release, quit.
Answers: ("ready", counts), ("frame", Frame), ("failed", sentence), ("state", "running" | "paused"),
and ("notice", sentence) as any child of the editor's (see `child`).
"""

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.history import ENERGIES, Frame
from pliant.app.editor.pull import Grip, grip
from pliant.core.compiling import working_time
from pliant.core.errors import PliantError
from pliant.core.launch import set_threads, thread_count
from pliant.dynamics.energies import EnergyBook
from pliant.dynamics.march import march
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import PHASES
from pliant.fem.bodies.body import Body

RUNAWAY = 100.0
"""Body sizes a point may travel before a run counts as diverged."""

ONE_THREAD = 8000
"""Cells below which one thread steps as fast as two, and leaves the other core to the page."""


def work(connection: Connection, device: str, threads: int | None) -> None:
    """Serve orders until told to quit."""
    from pliant.app.terminal.console import set_machine

    set_machine(device, threads)
    _Worker(connection, choose_threads=threads is None).serve()


class _Worker:
    def __init__(self, connection: Connection, *, choose_threads: bool = False):
        self.connection = connection
        self._all_threads = thread_count() if choose_threads else 0
        self.scene: Scene | None = None
        self.description: dict[str, Any] = {}
        self.playing = False
        self.speed = 1.0
        self.held: tuple[Grip, np.ndarray] | None = None

    def serve(self) -> None:
        while True:
            wait = self._until_next() if self.playing else None
            while self.connection.poll(wait):
                name, value = self.connection.recv()
                if name == "quit":
                    return
                self._guarded(self._obey, name, value)
                wait = self._until_next() if self.playing else None
            if self.playing:
                self._guarded(self._advance)

    def _until_next(self) -> float:
        """Seconds until the next step is due: no faster than time itself, times the speed."""
        assert self.scene is not None
        due = self.started + (self.state.t - self.started_at) / self.speed
        late = time.perf_counter() - due
        if late > 0.25:  # slower than time: do not catch up in a rush later
            self.started += late
        return max(0.0, -late)

    def _obey(self, name: str, value: Any) -> None:
        if name == "scene":
            self._take(*value)
        elif self.scene is None:
            return
        elif name == "play":
            self._start()
        elif name == "pause":
            self._pause()
        elif name == "step":
            self.system.require_stable()
            self._advance()
        elif name == "reset":
            self._reset()
        elif name == "speed":
            self.speed = float(np.clip(value, 0.01, 100.0))
            self._start_clock()
        elif name == "pull":
            self._pull(*value)
        elif name == "release":
            self.held = None

    def _guarded(self, do: Callable[..., None], *arguments: Any) -> None:
        try:
            do(*arguments)
        except PliantError as error:
            self._fail(str(error))
        except MemoryError:
            self._fail("Not enough memory: use a larger spacing.")
        except (EOFError, OSError):
            raise  # the editor is gone
        except Exception as error:  # a mistake of ours must show in the page, not end the worker
            self._fail(f"{type(error).__name__}: {error}")

    def _take(self, description: dict[str, Any], body: Body | None, start: Any) -> None:
        """A new scene; body: None if it is the old one. start: (t, u, v, a) to go on from."""
        kept = body is None and self.scene is not None
        old = body if body is not None else self.scene.body  # type: ignore[union-attr]
        scene = build_scene(description, make_body=lambda *_: old)
        changed = {k for k in {*description, *self.description}
                   if description.get(k) != self.description.get(k)}  # fmt: skip
        numbers_only = changed <= {"material", "title", "description", "steps"}
        if kept and numbers_only and self._keeps_as_much_as(scene):
            self.system.update(scene)
        else:
            if self._all_threads:
                set_threads(1 if len(scene.body.cells) < ONE_THREAD else self._all_threads)
            self.system = scene.make_model()
            self.held = None
        self.scene, self.description = scene, description
        size = scene.body.nodes.max(axis=0) - scene.body.nodes.min(axis=0)
        self.size = float(np.linalg.norm(size))
        if start is not None:
            t, u, v, a = start
            self.state = self.system.restored({"u": u, "v": v, "a": a}, float(t))
            self.step = int(round(t / scene.dt))
        elif not kept:
            self._reset(say=False)
        self._start_clock()
        self._open_book()
        counts = {"cells": len(scene.body.cells), "nodes": len(scene.body.nodes)}
        self.connection.send(("ready", counts))

    def _keeps_as_much_as(self, scene: Scene) -> bool:
        """Whether states of the present scene fit this one: as many viscoelastic branches."""
        assert self.scene is not None
        return len(self.scene.material.branches) == len(scene.material.branches)

    def _start(self) -> None:
        self.system.require_stable()
        self.playing = True
        self._start_clock()
        self.connection.send(("state", "running"))

    def _pause(self) -> None:
        self.playing = False
        self.held = None
        if self.scene is not None:
            fields = tuple(f.numpy() for f in self.state.fields())
            self.connection.send(("kept", (self.state.t, *fields)))
        self.connection.send(("state", "paused"))

    def _start_clock(self) -> None:
        self.started = time.perf_counter()
        self.started_at = self.state.t

    def _open_book(self) -> None:
        """Begin a new account of energies at the present state."""
        self.book = EnergyBook(self.system)
        self.book.open(self.state)

    def _reset(self, *, say: bool = True) -> None:
        self.step = 0
        self.state = self.system.initial_state()
        self._start_clock()
        self._open_book()
        if say:
            self.connection.send(("restarted", None))

    def _pull(self, point: int, target: Any, strength: float) -> None:
        assert self.scene is not None
        if self.held is None:
            held = grip(self.scene, self.system.masses, int(point), strength)
        else:
            held = self.held[0]
        self.held = (held, np.asarray(target, float))

    def _advance(self) -> None:
        """One step, sent as a frame; a failure pauses."""
        assert self.scene is not None
        scene, began = self.scene, working_time()
        push = None
        if self.held is not None:
            held, target = self.held
            u, v = (x[:, : scene.dim] for x in self.system.carrier.apply(self.state))
            push = held.force(u + scene.body.nodes, v, target)
        self.system.push(push)
        step = next(march(self.system, self.state, number=self.step))
        after, record = step.after, step.record
        u = self.system.carrier.apply(after)[0]
        if not (np.isfinite(u).all() and np.abs(u).max() < RUNAWAY * self.size):
            self._fail(
                f"The run diverged at t = {after.t:.3g} s: use a smaller time step, another "
                "integrator or smaller loads."
            )
            return
        self.book.add(self.state, after)
        complaint = self.book.complaint(after.t)
        if complaint is not None:
            self._fail(complaint)
            return
        self.state, self.step = after, step.number
        numbers = {f"{p}_ms": 1e3 * record.timings[p] for p in PHASES if p in record.timings}
        numbers["iterations"] = float(record.solution.iterations)
        numbers["parts"] = float(record.parts)
        now = self.book.now
        numbers |= {name: float(getattr(now, name)) for name in ENERGIES}
        numbers["step_ms"] = 1e3 * (working_time() - began)
        frame = Frame(self.step, after.t, u[:, : scene.dim].astype(np.float32), numbers)
        self.connection.send(("frame", frame))

    def _fail(self, sentence: str) -> None:
        self.playing = False
        self.held = None
        self.connection.send(("failed", sentence))
        self.connection.send(("state", "paused"))
