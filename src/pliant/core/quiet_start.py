"""Warp's start, without its greeting and without the lament that there is no GPU."""

import ctypes
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import warp as wp

from pliant.core.kernel_cache import require_writable, use_temporary_cache

DRIVERS = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so", "libcuda.so.1")


def start_warp() -> None:
    """Start Warp, once; what it says of a GPU is heard only where there is one."""
    wp.config.log_level = logging.ERROR  # a library does not announce itself
    wp.config.enable_backward = False  # derivatives are written by hand; this halves compile times
    try:
        _init()
    except OSError as error:  # the folder of its cache cannot be made
        use_temporary_cache(str(error.filename or "The kernel cache"))
        _init()
    require_writable()


def _init() -> None:
    with nullcontext() if has_driver() else native_silence():
        wp.init()


def has_driver() -> bool:
    """True if a CUDA driver is installed."""
    for name in DRIVERS:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


@contextmanager
def native_silence() -> Iterator[None]:
    """Without what native code writes to standard error, past Python's own stream."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
