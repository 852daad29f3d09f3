"""Bodies that this machine's memory cannot hold, refused before anything is built."""

import os
from pathlib import Path

import numpy as np

from pliant.app.describing.cell_count import grid_cells, spacing_for
from pliant.core.errors import BadInput
from pliant.geometry.field import MAX_NODES
from pliant.geometry.shape import Shape

BYTES_A_CELL = 5_000
"""Memory that a grid's cell takes while it is stepped: 5,400 bytes of cuboids of 200,000 and of a
million cells (benchmarks/RESULTS.md), most of it the matrix and its coarser copies."""

LOOK_FROM = 2_000_000
"""Lattice positions around a body from which its cells are counted: fewer fit anywhere."""


def require_room(shape: Shape, spacing: float | None) -> None:
    """Refuse a grid with more cells than there is memory for, and name a spacing that would do."""
    if spacing is None or not (np.isfinite(spacing) and spacing > 0.0):
        return  # a sampled field has its own; the rest is refused where it is built
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    with np.errstate(over="ignore", invalid="ignore"):
        around = float(np.prod((hi - lo) / spacing + 1.0))
    if not LOOK_FROM <= around <= MAX_NODES:
        return  # small, or refused where it is built
    room = free_memory() // BYTES_A_CELL
    cells = grid_cells(shape, spacing)[0]
    if cells > room:
        raise BadInput(
            f"spacing {spacing:g} means about {cells:,} cells, which need "
            f"{_gigabytes(cells * BYTES_A_CELL)}, and {_gigabytes(room * BYTES_A_CELL)} are free; "
            f"a spacing of {spacing_for(shape, int(room // 2)):g} would do."
        )


def free_memory() -> int:
    """Bytes that a new process may take without pushing others out; a guess where none is known."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 16 * 1024**3


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
