"""Displacements beyond the body: from the active nodes of a lattice into a band around them.

The band's values make a sum of squared differences smallest, the active nodes' values given:

    second differences   sum |u[i-1] - 2 u[i] + u[i+1]|^2   over triples along the axes (default)
    Laplace              sum |u[i] - u[i+1]|^2              over neighbours (seed 000, sec. 2.5.2.5)

The first continues a field linearly, so the surface of a body that is stretched or turned stays
where it is; the second flattens it, and the surface lags behind by the strain times its distance to
the nearest active node. Both end freely at the border of the band (no condition there).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse.linalg import splu

from pliant.core.errors import BadInput
from pliant.core.launch import thread_count

LAYERS = 5
"""Nodes of the band in the 1-norm, as in seed 000, section 4.4.5: the kernel of the advection
reaches 1.5 cells, and the distances must be right as far as a redistancing looks."""

SHARED = 4_000
"""Nodes of the band from which threads share the components: a solve then takes a millisecond."""

METHODS = ("second_differences", "laplace")


@dataclass(frozen=True)
class Extension:
    """A lattice's active nodes and the band around them.

    active: (n, dim) integer positions. After construction `lattice` is (n + m, dim): the active
    nodes in their order, then the band. Every active node must have an active neighbour along each
    axis, as the corners of cells do; the minimum is then unique, and linear fields are continued
    exactly by second differences.
    """

    active: np.ndarray
    layers: int = LAYERS
    method: str = "second_differences"
    lattice: np.ndarray = field(init=False)

    def __post_init__(self):
        if self.method not in METHODS:
            raise BadInput(f"method must be one of {', '.join(METHODS)}, not '{self.method}'.")
        if self.layers < 1:
            raise BadInput(f"The band needs at least one layer, not {self.layers}.")
        active = np.asarray(self.active, np.int64)
        low = active.min(axis=0) - self.layers
        size = active.max(axis=0) + self.layers + 1 - low
        inside = np.zeros(tuple(size), bool)
        inside[tuple((active - low).T)] = True
        cross: Any = ndimage.generate_binary_structure(active.shape[1], 1)
        grown = ndimage.binary_dilation(inside, cross, iterations=self.layers)
        band = np.argwhere(grown & ~inside)
        band = band[np.lexsort(band.T)]  # x fastest, as the active nodes
        index = np.full(tuple(size), -1, np.int64)
        lattice = np.concatenate([active, band + low])
        index[tuple((lattice - low).T)] = np.arange(len(lattice))
        object.__setattr__(self, "lattice", lattice)
        object.__setattr__(self, "_index", index)

    @property
    def active_count(self) -> int:
        """Rows of `lattice` that are active nodes."""
        return len(self.active)

    def extend(self, values: np.ndarray) -> np.ndarray:
        """Values (n + m, components) of nodal values (n, components), all in one solve."""
        values = np.asarray(values, float)
        return np.concatenate([values, self._solved(-(self._coupling @ values))])

    def spread(self, dual: np.ndarray) -> np.ndarray:
        """The transpose of `extend`: (n + m, components) to (n, components)."""
        n = self.active_count
        return dual[:n] - self._coupling.T @ self._solved(np.ascontiguousarray(dual[n:]))

    def _solved(self, right: np.ndarray) -> np.ndarray:
        """By the factor, the columns shared among threads: each is solved alone, in any company."""
        parts = min(thread_count(), right.shape[1] if right.ndim == 2 else 1)
        if parts < 2 or len(right) < SHARED:
            return self._factor.solve(right)
        factor = self._factor  # made here: the threads would make one each
        pieces = [np.ascontiguousarray(p) for p in np.array_split(right, parts, axis=1)]
        with ThreadPoolExecutor(parts - 1) as threads:
            others = [threads.submit(factor.solve, p) for p in pieces[1:]]
            return np.hstack([factor.solve(pieces[0]), *(o.result() for o in others)])

    @cached_property
    def _differences(self) -> sparse.csc_matrix:
        """One row for each difference that a band node takes part in, (rows, n + m)."""
        index: np.ndarray = self._index  # pyright: ignore[reportAttributeAccessIssue]
        pattern = (1.0, -2.0, 1.0) if self.method == "second_differences" else (1.0, -1.0)
        columns = []
        for axis in range(index.ndim):
            ends = [
                np.take(index, range(k, index.shape[axis] - len(pattern) + 1 + k), axis).reshape(-1)
                for k in range(len(pattern))
            ]
            nodes = np.stack(ends, axis=1)
            chosen = (nodes >= 0).all(axis=1) & (nodes >= self.active_count).any(axis=1)
            columns.append(nodes[chosen])
        nodes = np.concatenate(columns)
        row = np.repeat(np.arange(len(nodes)), len(pattern))
        value = np.tile(pattern, len(nodes))
        shape = (len(nodes), len(self.lattice))
        return sparse.csc_matrix((value, (row, nodes.reshape(-1))), shape=shape)

    @cached_property
    def _coupling(self) -> sparse.csr_matrix:
        n = self.active_count
        D = self._differences
        return (D[:, n:].T @ D[:, :n]).tocsr()

    @cached_property
    def _factor(self) -> Any:
        # Factored once: the band is thin, so the fill-in stays small, and each frame, component
        # and adjoint is then two triangular solves.
        band = self._differences[:, self.active_count :]
        normal = (band.T @ band).tocsc()
        # Positive definite: without pivots the factors keep the pattern and are a tenth smaller.
        return splu(
            normal, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=1,
            options={"SymmetricMode": True},
        )  # fmt: skip
