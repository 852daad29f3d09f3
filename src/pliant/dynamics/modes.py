"""Natural frequencies and modes: K phi = w^2 M phi on the free components.

Small bodies are factorised (shift and invert, ARPACK), large ones iterated (iterated_modes).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from pliant.core.errors import BadInput
from pliant.core.shown import Shown, shown_by
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.integrators import ImplicitEuler
from pliant.dynamics.iterated_modes import Progress, iterated_modes, stiffness_to_mass
from pliant.dynamics.scene import Scene
from pliant.linalg.multigrid import Multigrid

RIGID_SHIFT = 1e-3
"""Shift, as a share of the stiffness-to-mass scale of the whole body, that makes a free body's
matrix invertible; it is subtracted again from the eigenvalues."""

DIRECT_NODES = {2: 20_000, 3: 1_500}
"""Nodes up to which the matrix is factorised (2D and 3D): the fill of a factor grows fast in 3D."""

LARGEST_SHARE = 0.01
"""Modes asked for, as a share of all, from which the matrix is factorised whatever its size."""


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
    scene: Scene,
    count: int = 6,
    *,
    method: str | None = None,
    progress: Progress | bool | None = None,
) -> Modes:
    """The `count` lowest modes about the rest shape; a free body starts with its rigid motions.

    method: "direct" (the matrix is factorised) or "iterated" (LOBPCG with multigrid); by the size
    of the body if None. progress: told (modes found, modes wanted, largest relative residual);
    True shows them.
    """
    if progress is True:
        with shown_by("progress")("modes", count) as bar:

            def tell(done: int, _: int, residual: float) -> None:
                bar.reach(done, f"residual {residual:.1e}")

            return modes(scene, count, method=method, progress=tell)
    if method not in (None, "direct", "iterated"):
        raise BadInput(f'method must be "direct" or "iterated", not {method!r}.')
    asked, free = scene, 3 * len(scene.body.nodes)
    large = len(scene.body.nodes) > DIRECT_NODES[scene.dim] and count <= LARGEST_SHARE * free
    if method == "iterated" or (method is None and large):
        # what multiplies a step's matrix has no part in modes: any scheme with a hierarchy will do
        scene = replace(
            scene, integrator=ImplicitEuler(scene.dt), preconditioner="multigrid"
        )  # fmt: skip
        solve = _iterated
    else:
        solve = _direct
    model = ImplicitModel(scene)
    if not isinstance(model.preconditioner, Multigrid):
        solve = _direct  # too small for a hierarchy of grids
    free = int((model.boundary.free > 0.0).sum())
    if not 0 < count < free - 1:
        raise BadInput(f"count must lie between 1 and {free - 2}, not {count}.")
    shift = RIGID_SHIFT * stiffness_to_mass(model)
    values, vectors = solve(model, count, shift, progress or None)
    order = np.argsort(values, kind="stable")
    shapes = vectors[:, order].T.reshape(count, model.node_count, 3)[:, :, : scene.dim]
    frequencies = np.sqrt(np.maximum(values[order], 0.0)) / (2.0 * np.pi)
    return Modes(frequencies, np.ascontiguousarray(shapes), asked)


def _iterated(
    model: ImplicitModel, count: int, shift: float, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray]:
    return iterated_modes(model, count, shift, progress)


def _direct(
    model: ImplicitModel, count: int, shift: float, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray]:
    """w^2 (count,) and vectors (3 nodes, count)."""
    model.assemble_rest()
    free = np.flatnonzero(model.boundary.free.reshape(-1))
    mass = model.inertia.mass.to_scipy()
    K = model.matrix.to_scipy().tocsr()[free][:, free].tocsc()
    M = sparse.kron(mass, sparse.identity(3)).tocsr()[free][:, free].tocsc()
    factor = splu(K + shift * M, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    inverse: Any = LinearOperator(K.shape, matvec=factor.solve, dtype=float)  # pyright: ignore
    start = np.random.default_rng(0).standard_normal(len(free))  # fixed: the same bits every time
    values, found = eigsh(K, count, M, sigma=-shift, OPinv=inverse, v0=start, which="LM")
    vectors = np.zeros((3 * model.node_count, count))
    vectors[free] = found
    if progress is not None:
        progress(count, count, 0.0)
    return values, vectors
