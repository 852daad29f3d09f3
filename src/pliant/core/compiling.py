"""Kernels are compiled when they are first used and kept on disk: who waits for it is told.

A cold cache means 8 to 30 seconds in all, spread over the first steps of the first run. The first
kernel that is not on disk says so, once a process, as a warning of this module's logger: on
standard error unless a program wants it elsewhere. `working_time` is a clock that stands still
meanwhile, so that the time told of a step is a step's.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from pliant.core.kernel_cache import is_compiled, seal

log = logging.getLogger(__name__)

MESSAGE = "compiling kernels, once, about 25 s"

_announced = False
_loading_seconds = 0.0
_turn = Lock()


def working_time() -> float:
    """Seconds on a clock like time.perf_counter that stands still while kernels are loaded."""
    return time.perf_counter() - _loading_seconds


@contextmanager
def loading(kernel: Any, device: str) -> Iterator[None]:
    """Around what makes Warp load a kernel: says if that means compiling, and takes the time."""
    global _loading_seconds
    began = time.perf_counter()
    if not is_compiled(kernel, device):
        _announce()
    try:
        yield
        seal(kernel, device)
    finally:
        with _turn:
            _loading_seconds += time.perf_counter() - began


def _announce() -> None:
    """Say that kernels are being compiled, if nobody has said so."""
    global _announced
    if not _announced:
        _announced = True
        log.warning(MESSAGE)
