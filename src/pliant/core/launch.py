"""The one way kernels are launched: split over CPU threads, recorded when repeated, as is on CUDA.

Convention: the first argument of every kernel is `first: wp.int32`, the index its range starts at;
its item is `first + wp.tid()`. A kernel writes only to its own item, so the result does not depend
on how the range was cut, and one thread or two give identical bits.
"""

import logging
import os
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from time import sleep
from typing import Any

import numpy as np
import warp as wp

from pliant.core.errors import BadInput

wp.config.log_level = logging.ERROR  # a library does not announce itself
wp.config.enable_backward = False  # derivatives are written by hand; this halves compile times

DEFAULT_GRAIN = 30_000
"""Items a thread must have before a launch is split: handing work to a second Python thread costs
10 to 50 microseconds, so only launches of a fifth of a millisecond or more gain."""

_threads: int | None = None
_device: str = "cpu"
_workers: list["_Worker"] = []


def thread_count() -> int:
    """CPU threads in use: `set_threads`, else PLIANT_THREADS, else the number of cores."""
    global _threads
    if _threads is None:
        text = os.environ.get("PLIANT_THREADS", "")
        if text and not (text.isdigit() and int(text) >= 1):
            raise BadInput(f"PLIANT_THREADS must be a whole number of at least 1, not '{text}'.")
        _threads = int(text) if text else len(os.sched_getaffinity(0))
    return _threads


def set_threads(count: int) -> None:
    """Use `count` CPU threads from now on."""
    global _threads
    if count < 1:
        raise BadInput(f"The number of threads must be at least 1, not {count}.")
    _threads = count


def set_device(name: str) -> None:
    """Run on 'cpu' or a CUDA device such as 'cuda:0'; arrays made before stay where they are."""
    global _device
    wp.init()
    try:
        _device = wp.get_device(name).alias
    except Exception as error:
        known = ", ".join(d.alias for d in wp.get_devices())
        raise BadInput(f"Device '{name}' is not available; this machine has: {known}.") from error


def device() -> str:
    """The device new arrays are made on."""
    return _device


class _Worker:
    """A thread that waits for one piece of work at a time.

    Two bare locks hand the work over six times faster than a pool's queue and futures, and a solve
    hands over hundreds of times.
    """

    def __init__(self):
        self._go, self._done = Lock(), Lock()
        self._go.acquire()
        self._done.acquire()
        self._work: Callable[[], Any] | None = None
        self._error: BaseException | None = None
        self._busy = False
        Thread(target=self._loop, daemon=True, name="pliant").start()

    def _loop(self) -> None:
        while True:
            self._go.acquire()
            try:
                assert self._work is not None
                self._work()
            except BaseException as error:
                self._error = error
            self._busy = False
            self._done.release()

    def start(self, work: Callable[[], Any]) -> None:
        """Begin; `wait` must follow before the next start."""
        self._work, self._busy = work, True
        self._go.release()

    def wait(self) -> None:
        """Return when the work is done, interrupted or not; raises what it raised."""
        try:
            self._done.acquire()
        except KeyboardInterrupt:
            while self._busy:
                sleep(1e-4)
            self._done.acquire(blocking=False)
            raise
        if self._error is not None:
            error, self._error = self._error, None
            raise error


_hand_over = Lock()
"""One split launch at a time: simulations in several threads of a program take turns."""

os.register_at_fork(after_in_child=_workers.clear)  # threads do not survive a fork


def _run_split(commands: Sequence[Any]) -> None:
    while len(_workers) < len(commands) - 1:
        _workers.append(_Worker())
    with _hand_over:
        busy = list(zip(_workers, commands[1:], strict=False))
        for worker, command in busy:
            worker.start(command.launch)
        try:
            commands[0].launch()
        finally:
            for worker, _ in busy:
                worker.wait()


class Recorded:
    """A launch whose arguments stay the same objects: prepared once, run many times."""

    def __init__(
        self, kernel: Any, count: int, inputs: Sequence[Any], *, grain: int = DEFAULT_GRAIN
    ):
        parts = 1
        if _device == "cpu":
            parts = max(1, min(thread_count(), count // max(grain, 1)))
        cuts = [count * p // parts for p in range(parts + 1)]
        self._commands: list[Any] = [
            wp.launch(
                kernel, dim=b - a, inputs=[a, *inputs], device=_device, record_cmd=True
            )
            for a, b in zip(cuts, cuts[1:], strict=False)
            if b > a
        ]

    def set(self, index: int, value: Any) -> None:
        """Change argument `index` (counted without `first`)."""
        for command in self._commands:
            command.set_param_at_index(index + 1, value)

    def run(self) -> None:
        """Launch; returns when the work is done (on CUDA: when it is queued)."""
        if len(self._commands) > 1:
            _run_split(self._commands)
        elif self._commands:
            self._commands[0].launch()


def launch(
    kernel: Any, count: int, inputs: Sequence[Any], *, grain: int = DEFAULT_GRAIN
) -> None:
    """Run `kernel` over `count` items with `inputs` (without `first`)."""
    if count == 0:
        return
    if _device != "cpu" or thread_count() == 1 or count < 2 * grain:
        wp.launch(kernel, dim=count, inputs=[0, *inputs], device=_device)
        return
    Recorded(kernel, count, inputs, grain=grain).run()


def to_device(array: np.ndarray, dtype: Any) -> wp.array:
    """Copy a NumPy array to the current device (a copy, so that the caller's array stays his)."""
    return wp.array(np.ascontiguousarray(array), dtype=dtype, device=_device, copy=True)


def share(array: np.ndarray, dtype: Any) -> wp.array:
    """A NumPy array nobody changes, on the current device: on the CPU the same memory, no copy."""
    return wp.array(np.ascontiguousarray(array), dtype=dtype, device=_device, copy=_device != "cpu")


def zeros(shape: int | tuple[int, ...], dtype: Any) -> wp.array:
    """Zeros on the current device."""
    return wp.zeros(shape, dtype=dtype, device=_device)
