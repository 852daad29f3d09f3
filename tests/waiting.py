"""Waiting for what happens elsewhere: in another process, in a page."""

import os
import time

PATIENCE = 150.0
"""Seconds after which it will not happen any more, however busy the machine is: a first step
compiles its kernels, half a minute on a free core."""


def soon(condition, seconds: float = PATIENCE, every: float = 0.02):
    """What condition() says once it is true, or at the end of the patience."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(every)
    return value


def gone(pid: int) -> bool:
    """True as soon as no such process exists."""
    return soon(lambda: not os.path.exists(f"/proc/{pid}"))
