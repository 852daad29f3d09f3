"""The one way kernels are launched: split over CPU threads, recorded when repeated, as is on CUDA.

Convention: the first argument of every kernel is `first: wp.int32`, the index its range starts at;
its item is `first + wp.tid()`. A kernel writes only to its own item, so the result does not depend
on how the range was cut, and one thread or two give identical bits.
"""

import os
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import warp as wp

from pliant.core.compiling import loading
from pliant.core.crew import Call, Crew, crew, rows
from pliant.core.errors import BadInput
from pliant.core.large_pages import ask_for_large_pages
from pliant.core.quiet_start import start_warp

start_warp()

DEFAULT_GRAIN = 4_000
"""Items a thread must have before a launch is split: handing a piece over takes a few microseconds,
so launches of twenty microseconds or more gain."""

PIECES = 8
"""Pieces a thread would do of a large launch if all were equally fast; at least a quarter of a
grain each."""

_threads: int | None = None
_device: str = "cpu"


def core_count() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """CPU threads in use: `set_threads`, else PLIANT_THREADS up to the number of cores."""
    global _threads
    if _threads is None:
        text = os.environ.get("PLIANT_THREADS", "")
        if text and not (text.isdecimal() and int(text[:9]) >= 1):
            raise BadInput(f"PLIANT_THREADS must be a whole number of at least 1, not '{text}'.")
        # more threads than cores only get in each other's way
        _threads = min(int(text[:9]), core_count()) if text else core_count()
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
    try:
        _device = wp.get_device(name).alias
    except Exception as error:
        known = ", ".join(d.alias for d in wp.get_devices())
        raise BadInput(f"Device '{name}' is not available; this machine has: {known}.") from error


def device() -> str:
    """The device new arrays are made on."""
    return _device


class Recorded:
    """A launch whose arguments stay the same objects: prepared once, run many times."""

    def __init__(
        self, kernel: Any, count: int, inputs: Sequence[Any], *, grain: int = DEFAULT_GRAIN
    ):
        self._crew: Crew | None = None
        self._on_cpu = _device == "cpu"
        self.count = count
        if count == 0:
            return
        if not self._on_cpu:
            arguments = [0, *inputs]
            with loading(kernel, _device):
                self._command: Any = wp.launch(
                    kernel, dim=count, inputs=arguments, device=_device, record_cmd=True
                )
            return
        self.call = Call(kernel, count, [0, *inputs])
        self.pieces = _pieces(count, grain)
        if self.pieces > 1:
            self._crew = crew(thread_count())
            self._shared = self._crew.call(rows([(self.call, self.pieces)]))

    def set(self, index: int, value: Any) -> None:
        """Change argument `index` (counted without `first`)."""
        if self.count and self._on_cpu:
            self.call.set(index + 1, value)
        elif self.count:
            self._command.set_param_at_index(index + 1, value)

    def run(self) -> None:
        """Launch; returns when the work is done (on CUDA: when it is queued)."""
        if self._crew is not None:
            self._crew.run(self._shared)
        elif self.count and self._on_cpu:
            self.call.run()
        elif self.count:
            self._command.launch()


class Series:
    """Recorded launches run one after the other, on the CPU without Python in between."""

    def __init__(self, launches: Sequence[Recorded]):
        self._launches = [launch for launch in launches if launch.count]
        self._crew: Crew | None = None
        if _device == "cpu" and self._launches:
            self._crew = crew(thread_count())
            table = rows([(launch.call, launch.pieces) for launch in self._launches])
            self._call = self._crew.call(table)

    def run(self) -> None:
        """Run all; returns when the work is done (on CUDA: when it is queued)."""
        if self._crew is not None:
            self._crew.run(self._call)
        else:
            for launch in self._launches:
                launch.run()


def launch(kernel: Any, count: int, inputs: Sequence[Any], *, grain: int = DEFAULT_GRAIN) -> None:
    """Run `kernel` over `count` items with `inputs` (without `first`)."""
    if count == 0:
        return
    if _device != "cpu":
        wp.launch(kernel, dim=count, inputs=[0, *inputs], device=_device)
        return
    call, pieces = Call(kernel, count, [0, *inputs]), _pieces(count, grain)
    if pieces > 1:
        crew(thread_count()).run_once(call, pieces)
    else:
        call.run()


def _pieces(count: int, grain: int) -> int:
    """How many pieces a launch on the CPU is cut into, for the threads there are."""
    threads = thread_count()
    if threads == 1 or count < 2 * max(grain, 1):
        return 1
    return min(PIECES * threads, 4 * count // max(grain, 1), count)


def to_device(array: np.ndarray, dtype: Any) -> wp.array:
    """Copy a NumPy array to the current device (a copy, so that the caller's array stays his)."""
    if _device == "cpu":
        return share(np.array(array, order="C"), dtype)  # NumPy's copies lie on large pages
    return wp.array(np.ascontiguousarray(array), dtype=dtype, device=_device, copy=True)


def share(array: np.ndarray, dtype: Any) -> wp.array:
    """A NumPy array nobody changes, on the current device: on the CPU the same memory, no copy."""
    return wp.array(np.ascontiguousarray(array), dtype=dtype, device=_device, copy=_device != "cpu")


def zeros(shape: int | tuple[int, ...], dtype: Any) -> wp.array:
    """Zeros on the current device."""
    if _device != "cpu":
        return wp.zeros(shape, dtype=dtype, device=_device)
    out = wp.empty(shape, dtype=dtype, device="cpu")
    ask_for_large_pages(out.ptr or 0, out.capacity)
    out.zero_()
    return out


def column(array: wp.array, j: int) -> wp.array:
    """Column j of a two-dimensional array: the same memory, seen with a stride."""
    return cast(wp.array, array[:, j])
