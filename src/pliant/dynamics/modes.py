"""Natural frequencies and modes: K phi = w^2 M phi on the free components."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from pliant.core.errors import BadInput
from pliant.core.shown import Shown, shown_by
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.scene import Scene

RIGID_SHIFT = 1e-3
"""Shift, as a share of the stiffness-to-mass scale of the whole body, that makes a free body's
matrix invertible; it is subtracted again from the eigenvalues."""


@dataclass(frozen=True)
class Modes(Shown):
    """frequencies: (count,) [Hz], ascending; shapes: (count, nodes, dim), unit modal mass.

    scene: whose they are.
    """

    frequencies: np.ndarray
    shapes: np.ndarray
    scene: Scene | None = None

    def __repr__(self) -> str:
        low, high = self.frequencies[0], self.frequencies[-1]
        return f"<Modes: {len(self.frequencies)}, from {low:.4g} to {high:.4g} Hz>"


def modes(
    scene: Scene, count: int = 6, *, progress: Callable[[int], None] | bool | None = None
) -> Modes:
    """The `count` lowest modes about the rest shape; a free body starts with its rigid motions.

    progress(solves) is called after each solve with the stiffness; True shows them.
    """
    if progress is True:
        with shown_by("progress")("modes: solves", None) as bar:
            return modes(scene, count, progress=bar.reach)
    # motions too small to turn a cell: walls may have their consistency terms, as in statics
    s = ImplicitModel(scene, nitsche=True)
    n = s.node_count
    s.assemble_rest()
    free = np.flatnonzero(s.boundary.free.reshape(-1))
    if not 0 < count < len(free) - 1:
        raise BadInput(f"count must lie between 1 and {len(free) - 2}, not {count}.")
    K = s.matrix.to_scipy().tocsr()[free][:, free].tocsc()
    M = sparse.kron(s.inertia.mass.to_scipy(), sparse.identity(3)).tocsr()[free][:, free].tocsc()
    extent = np.ptp(scene.body.nodes, axis=0).max()
    modulus = float(np.mean(s.mu))
    density = s.masses.sum() / max(scene.body.volume, 1e-300)
    shift = -RIGID_SHIFT * modulus / (density * extent**2)
    factor = splu(K - shift * M, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    solves = 0

    def solve(b: np.ndarray) -> np.ndarray:
        nonlocal solves
        solves += 1
        if callable(progress):
            progress(solves)
        return factor.solve(b)

    inverse: Any = LinearOperator(K.shape, matvec=solve, dtype=float)  # pyright: ignore
    start = np.random.default_rng(0).standard_normal(len(free))  # fixed: the same bits every time
    values, vectors = eigsh(K, count, M, sigma=shift, OPinv=inverse, v0=start, which="LM")
    order = np.argsort(values)
    shapes = np.zeros((count, 3 * n))
    shapes[:, free] = vectors[:, order].T
    frequencies = np.sqrt(np.maximum(values[order], 0.0)) / (2.0 * np.pi)
    return Modes(frequencies, shapes.reshape(count, n, 3)[:, :, : scene.dim], scene)
