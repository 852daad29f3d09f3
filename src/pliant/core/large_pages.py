"""Large CPU arrays on 2 MB pages: fewer pages to look up, a few per cent of a step.

Linux gives them to whoever asks (its setting 'madvise', which most distributions have); elsewhere,
and where the setting is 'never', nothing happens.
"""

import ctypes
import sys

PAGE = 1 << 21
_HUGEPAGE = 14
"""MADV_HUGEPAGE of <sys/mman.h>."""

_madvise = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None


def ask_for_large_pages(pointer: int, size: int) -> None:
    """For fresh memory, before it is first written: the pages come when they are touched."""
    start, end = -(-pointer // PAGE) * PAGE, (pointer + size) // PAGE * PAGE
    if _madvise is not None and end > start:
        _madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _HUGEPAGE)
