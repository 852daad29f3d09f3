"""Geometric multigrid as a preconditioner: one symmetric cycle in single precision.

The levels are those of linalg.hierarchy, the coarse matrices Galerkin products (linalg.galerkin),
the smoother Gauss-Seidel (linalg.smoother), the coarsest level a dense inverse. Held components
stay zero on every level.
"""

from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, Series, device, to_device, zeros
from pliant.core.solution import Solution
from pliant.linalg.blocks import BlockMatrix
from pliant.linalg.coarsest import regularised_inverse
from pliant.linalg.galerkin import GalerkinProduct, make_weights
from pliant.linalg.hierarchy import coarse_levels, from_zero
from pliant.linalg.level_rows import make_rows, prepare_diagonal, round_matrix
from pliant.linalg.nodes import Nodes
from pliant.linalg.patch_smoother import PatchSmoother
from pliant.linalg.patches import Patches, finest_patches, lattice_patches
from pliant.linalg.smoother import cycle_kernels, to_double, to_single
from pliant.linalg.stiff_nodes import STIFF_GRAIN, Stiff

REFRESH_COST = 3.0
"""What a refresh costs, in iterations: the hierarchy is recomputed when ageing has cost as much."""

LARGE_LEVEL = 256
"""Nodes from which a level's sweeps are worth two threads: half a sweep over 256 rows takes 10
microseconds, handing it over one or two."""

SHORT_GRAIN = 1_000
"""Nodes per thread from which interpolation is split (20 ns a node)."""

TWICE_FROM = 2
"""First level that is solved by two cycles."""

CONTRAST = 100.0
"""Ratio of the stiffest cell to the softest from which each level is swept three times."""

NODE_SWEEPS = ((4.0, 2), (8.0, 3))
"""Sweeps from a ratio lambda / mu on (Poisson's ratio 0.4 and 0.444), while nodes are swept singly:
at 0.45 a cut torus needs 10 to 13 iterations with two and 8 to 10 with three, at 0.49 still 16 to
32."""

PATCH_SWEEPS = ((30.0, 1), (250.0, 2), (2500.0, 4))
"""Sweeps over patches from a ratio lambda / mu on (0.484, 0.498, 0.4998). One costs as much as
nine over nodes; at 0.499 nodes alone need 130 iterations, at 0.4999 more than 400."""


class Grid:
    """Matrix of one level on the device, in single precision."""

    def __init__(self, row_start: np.ndarray, columns: np.ndarray, free: wp.array):
        self.free = free
        self.rows = make_rows(row_start, columns)
        self.node_count = len(row_start) - 1

    def sweep(self, kernel: Any, *arguments: Any) -> list[Recorded]:
        """The launches of a sweep over the runs of this level, in one turn or two."""
        turns = 1 + int(self.rows.alternate)
        items = int(self.rows.runs) // turns
        rest = list(arguments)
        return [self._over(items, kernel, [self.rows, turn, *rest]) for turn in range(turns)]

    def pass_over(self, kernel: Any, *arguments: Any) -> Recorded:
        """A launch over all nodes, in any order."""
        items = int(self.rows.runs * self.rows.shares)
        return self._over(items, kernel, [self.rows, *arguments])

    def _over(self, items: int, kernel: Any, arguments: list) -> Recorded:
        grain = 1 if self.node_count >= LARGE_LEVEL else items
        return Recorded(kernel, items, arguments, grain=grain)

    def dense(self) -> np.ndarray:
        """The matrix as an array (nodes, 3, nodes, 3), for the coarsest level."""
        m = self.node_count
        out = np.zeros((m, m, 3, 3))
        for part in self.parts:
            i = np.repeat(np.arange(m), np.diff(part.start.numpy()))
            out[i, part.columns.numpy()] = part.values.numpy()
        out[np.arange(m), np.arange(m)] = self.rows.middle.numpy()
        return out.transpose(0, 2, 1, 3)

    @property
    def parts(self) -> tuple:
        """The blocks beside the diagonal."""
        return self.rows.lower, self.rows.upper, self.rows.outer

    def coupled(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of one of the nodes and another node that it shares a block with."""
        found: tuple[list, list] = [], []
        for part in self.parts:
            start, columns = part.start.numpy(), part.columns.numpy()
            found[0].append(np.repeat(nodes, start[nodes + 1] - start[nodes]))
            found[1].extend(columns[start[i] : start[i + 1]] for i in nodes)
        return np.concatenate(found[0]), np.concatenate(found[1])


class Multigrid:
    """Preconditioner for a body's matrices; `print(multigrid)` shows the levels."""

    def __init__(self, nodes: Nodes, free: np.ndarray):
        """free: (nodes, 3) of 1 (free) or 0 (held), as given to the BlockMatrix."""
        self._levels = coarse_levels(nodes, np.asarray(free, float))
        self._lattice = None if nodes.lattice is None else from_zero(nodes.lattice)
        self._sizes = [(nodes.count, len(nodes.pattern.columns))]
        self._sizes += [(level.node_count, len(level.columns)) for level in self._levels]
        self.prolong = [make_weights(level.prolong) for level in self._levels]
        self.restrict = [make_weights(level.restrict) for level in self._levels]
        self._matrix: BlockMatrix | None = None
        self._stale = True
        self._standard: float | None = None
        self._lost = 0.0
        self._nodes = nodes
        self._patches: list[Patches | None] | None = None
        self.sweeps, self.patch_sweeps = 1, 0
        self._for_contrast, self._for_bulk, self._for_patches = 1, 1, 0
        self.patched: list[PatchSmoother | None] = []
        self.stiff: np.ndarray | None = None
        self.stiff_sweeps = 0
        self.refreshes = 0

    def expect_contrast(self, ratio: float) -> None:
        """Prepare for a material whose stiffest cell is `ratio` times as stiff as its softest.

        Interpolation knows nothing of the material, so where it jumps the smoother must do more:
        random cells of contrast 1e4, 200,000 of them, need 34 iterations with one sweep and 17 with
        three. Elsewhere one sweep is as fast as two or three.
        """
        self._for_contrast = 3 if ratio > CONTRAST else 1
        self._choose_sweeps()

    def expect_bulk(self, ratio: float) -> None:
        """Prepare for a material whose lambda is `ratio` times its mu at most.

        Near incompressibility what is soft are motions of several nodes that keep the volume of
        every cell, and no sweep over single nodes finds them (see linalg.patches).
        """
        self._for_bulk = max((n for limit, n in NODE_SWEEPS if ratio > limit), default=1)
        self._for_patches = max((n for limit, n in PATCH_SWEEPS if ratio > limit), default=0)
        self._choose_sweeps()

    def _choose_sweeps(self) -> None:
        sweeps = max(self._for_contrast, self._for_bulk)
        if (sweeps, self._for_patches) != (self.sweeps, self.patch_sweeps):
            self.sweeps, self.patch_sweeps, self._matrix = sweeps, self._for_patches, None

    def expect_stiff(self, nodes: np.ndarray, sweeps: int) -> None:
        """Nodes that a penalty far stiffer than the body ties to each other, as at a weak wall.

        A coarse grid cannot see what they may still do together; they are swept by themselves
        around every coarse correction of the finest level. On CUDA, where a run of nodes is the
        work of a single thread, they are not.
        """
        if device() == "cpu" and len(nodes):
            self.stiff, self._matrix = np.unique(nodes).astype(np.int32), None
            self.stiff_sweeps = sweeps

    @property
    def around_stiff(self) -> int:
        """Sweeps over the stiff nodes around a coarse correction: a wall's penalty grows with
        lambda. The cuboid of resolution 25 at 0.45 needs 15 iterations if they are not doubled, and
        10 if they are.
        """
        return self.stiff_sweeps * (2 if self._for_bulk > 1 else 1)

    def _bind(self, matrix: BlockMatrix) -> None:
        """Make the levels."""
        self._matrix = matrix
        self.grids = [Grid(matrix.row_start.numpy(), matrix.columns.numpy(), matrix.free)]
        self.grids += [
            Grid(level.row_start, level.columns, to_device(level.free, wp.vec3d))
            for level in self._levels
        ]
        lattices = [self._lattice, *(level.lattice for level in self._levels)]
        fine = self.grids[0]
        self._round = Recorded(
            round_matrix, fine.node_count, [matrix.rows, fine.free, fine.rows], grain=2000
        )
        self._products = [
            GalerkinProduct(
                level, self.prolong[k], self.restrict[k],
                self.grids[k].rows, lattices[k], self.grids[k + 1].rows,
            )
            for k, level in enumerate(self._levels)
        ]  # fmt: skip
        self._diagonals = [
            Recorded(prepare_diagonal, g.node_count, [g.free, g.rows], grain=500)
            for g in self.grids
        ]
        self.patched = [None] * len(self.grids)
        if self.patch_sweeps:
            self.patched = [
                None if patches is None else PatchSmoother(grid.rows, patches)
                for grid, patches in zip(self.grids, self._choose_patches(), strict=True)
            ]
        last = self.grids[-1].node_count
        self.coarsest = zeros((last, last), wp.mat33f)
        self._cycle = Cycle(self, 1)
        self._casts: dict[tuple, tuple[Recorded, Recorded]] = {}

    def _choose_patches(self) -> list[Patches | None]:
        """Patches of every level but the coarsest, found once."""
        if self._patches is None:
            self._patches = [
                finest_patches(self._nodes, self._lattice),
                *(lattice_patches(v.lattice, v.row_start, v.columns) for v in self._levels),
            ]
            self._patches[-1] = None
        return self._patches

    def update(self, matrix: BlockMatrix, *, fresh: bool = False) -> None:
        """Called when the matrix has changed; recomputes the hierarchy only if it pays, or fresh.

        The rule: the first solve after a refresh sets the standard, digits gained an iteration.
        Later solves lose the iterations they need beyond it; when the losses add up to the cost of
        a refresh, the next matrix gets one. The iteration's stopping rule uses the true matrix, so
        the answer depends on this within its tolerance only.
        """
        if fresh or self._stale or self._matrix is not matrix:
            self.refresh(matrix)

    def forget(self) -> None:
        """Start anew: what follows does not depend on the matrices that came before."""
        self._stale = True

    @property
    def bound_to(self) -> BlockMatrix | None:
        """The matrix the levels were last computed from."""
        return self._matrix

    def report(self, solution: Solution) -> None:
        """Tell how a solve went (see `update`)."""
        if solution.iterations == 0 or solution.residual == 0.0:
            return
        gained = np.log10(solution.history[0] / solution.residual)
        if self._standard is None:
            self._standard = gained / solution.iterations
        elif self._standard > 0.0:
            self._lost += max(0.0, solution.iterations - gained / self._standard)
        self._stale = not self._lost < REFRESH_COST

    def refresh(self, matrix: BlockMatrix) -> None:
        """Recompute every level from the matrix."""
        if self._matrix is not matrix:
            self._bind(matrix)
        self._round.run()
        self._diagonals[0].run()
        for product, diagonal in zip(self._products, self._diagonals[1:], strict=True):
            product.run()
            diagonal.run()
        for smoother in self.patched:
            if smoother is not None:
                smoother.refresh()
        self._invert_coarsest()
        self._stale, self._standard, self._lost = False, None, 0.0
        self.refreshes += 1

    def _invert_coarsest(self) -> None:
        g = self.grids[-1]
        m = g.node_count
        A = g.dense().reshape(3 * m, 3 * m)
        inverse = regularised_inverse(0.5 * (A + A.T), g.free.numpy().reshape(-1) > 0)
        self.coarsest.assign(inverse.reshape(m, 3, m, 3).transpose(0, 2, 1, 3).astype(np.float32))

    def apply(self, r: wp.array, z: wp.array) -> None:
        """z = one cycle on r."""
        c = self._cycle
        key = (r.ptr, z.ptr)
        if key not in self._casts:
            n = r.shape[0]
            self._casts[key] = (
                Recorded(to_single, n, [r, c.b]),
                Recorded(to_double, n, [c.z, z]),
            )
            c.keep += [r, z]
        before, after = self._casts[key]
        before.run()
        c.run()
        after.run()

    def __str__(self) -> str:
        nodes, blocks = zip(*self._sizes, strict=True)
        lines = [f"multigrid: {len(nodes)} levels", "level      nodes     blocks  blocks/row"]
        lines += [f"{k:5d} {n:10,d} {b:10,d} {b / n:11.1f}" for k, (n, b) in enumerate(self._sizes)]
        lines.append(
            f"complexity: nodes {sum(nodes) / nodes[0]:.3f}, blocks {sum(blocks) / blocks[0]:.3f}; "
            "coarsest solved by its dense inverse"
        )
        return "\n".join(lines)


class Cycle:
    """The cycle for `width` right-hand sides: z from b, both in single precision.

    Sweeps before and after each coarse correction: one, or three for a material with jumps.
    Problems from level 2 on are solved by two cycles instead of one (a W-cycle below level 1): the
    coarse levels of a slender body are too stiff in bending for one to do, and all of them together
    are a seventh of the work.
    """

    def __init__(self, multigrid: Multigrid, width: int):
        V = wp.vec3f if width == 1 else wp.types.matrix((3, width), wp.float32)
        self._kernels, self._width = cycle_kernels(width), width
        self._multigrid = multigrid
        self.multigrid_grids = multigrid.grids
        sizes = [g.node_count for g in multigrid.grids]
        # right-hand side, result, residual, correction; and what a second cycle needs
        self._b, self._x, self._r, self._d = ([zeros(n, V) for n in sizes] for _ in range(4))
        self._defect, self._sum = (
            [zeros(n if k >= TWICE_FROM else 0, V) for k, n in enumerate(sizes)] for _ in range(2)
        )
        self.b = self._b[0]
        self._sequence: list[Recorded] = []
        self.z = self._append(0, self.b)
        self._series = Series(self._sequence)
        self.keep: list = []  # arrays whose addresses recorded launches hold

    def _append(self, k: int, b: wp.array) -> wp.array:
        """Append the launches of one cycle on level k; returns the array of the result."""
        K, m = self._kernels, self._multigrid
        g, x, r, d = m.grids[k], self._x[k], self._r[k], self._d[k]
        add, extend = self._sequence.append, self._sequence.extend
        if k == len(m.grids) - 1:
            add(Recorded(K.dense, g.node_count, [m.coarsest, b, x]))
            return x
        patched = m.patched[k]
        if patched is not None:
            extend(patched.down(self._width, m.patch_sweeps, b, x, r))
        else:
            extend(g.sweep(K.forward, b, x))
            add(g.pass_over(K.residual, x, r))
            for _ in range(m.sweeps - 1):
                extend(g.sweep(K.forward, r, d))
                add(g.pass_over(K.residual, d, r))
                add(Recorded(K.add, g.node_count, [d, x]))
        stiff = Stiff(g, m.stiff) if k == 0 and m.stiff is not None else None
        if stiff is not None:
            change = zeros(g.node_count, x.dtype)
            add(Recorded(K.stiff_clear, len(stiff.nodes), [stiff.nodes, change]))
            extend(stiff.sweeps(K, m.around_stiff, r, change))
            arguments = [g.rows, stiff.near, change, x, r]
            add(Recorded(K.stiff_defect, len(stiff.near), arguments, grain=STIFF_GRAIN))
        coarse_b, count = self._b[k + 1], m.grids[k + 1].node_count
        grain = SHORT_GRAIN // 8
        add(Recorded(K.restrict, count, [m.restrict[k], r, coarse_b], grain=grain))
        coarse = self._append(k + 1, coarse_b)
        if TWICE_FROM <= k + 1 < len(m.grids) - 1:
            c, total, defect = m.grids[k + 1], self._sum[k + 1], self._defect[k + 1]
            add(c.pass_over(K.defect, coarse_b, coarse, defect, total))
            add(Recorded(K.add, count, [self._append(k + 1, defect), total]))
            coarse = total
        arguments = [m.prolong[k], g.free, coarse, x]
        add(Recorded(K.prolong, g.node_count, arguments, grain=SHORT_GRAIN))
        if stiff is not None:
            extend(stiff.sweeps(K, m.around_stiff, b, x, down=True))
        if patched is not None:
            extend(patched.up(self._width, m.patch_sweeps, b, x))
            return x
        for _ in range(m.sweeps):
            add(g.pass_over(K.lower_residual, b, x, d))
            extend(g.sweep(K.backward, d, x, r))
            x, r = r, x
        return x

    def run(self) -> None:
        """z = the cycle applied to b."""
        self._series.run()
