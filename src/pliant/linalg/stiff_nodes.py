"""Nodes that a penalty ties to each other, swept by themselves around a coarse correction."""

from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, device, to_device
from pliant.linalg.level_rows import choose_runs

STIFF_GRAIN = 100
"""Nodes per thread from which sweeps over stiff nodes alone are split."""


class Stiff:
    """Nodes of a level that are swept by themselves, in runs as the level is."""

    def __init__(self, grid: Any, nodes: np.ndarray):
        """grid: the level, a linalg.multigrid.Grid."""
        self._grid = grid
        one, other = grid.coupled(nodes)
        self.nodes = to_device(nodes, wp.int32)
        self.near = to_device(np.union1d(nodes, other), wp.int32)
        among = np.isin(other, nodes)
        one, other = (np.searchsorted(nodes, ends[among]) for ends in (one, other))
        reach = int(np.abs(one - other).max(initial=0))
        runs, alternate = choose_runs(len(nodes), reach, device(), smallest=STIFF_GRAIN // 2)
        self._runs, self._turns = (runs, 2) if alternate else (1, 1)

    def sweeps(
        self, kernels: Any, count: int, b: wp.array, x: wp.array, *, down: bool = False
    ) -> list[Recorded]:
        """The launches of `count` sweeps for A x = b; down: in the opposite order."""
        turns = range(self._turns)
        return [
            Recorded(
                kernels.stiff_sweep, self._runs // self._turns,
                [self._grid.rows, self.nodes, self._runs, self._turns, turn, int(down), b, x],
                grain=1,
            )
            for _ in range(count)
            for turn in (reversed(turns) if down else turns)
        ]  # fmt: skip
