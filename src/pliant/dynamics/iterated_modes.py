"""Modes of large bodies: LOBPCG with a multigrid cycle as its preconditioner.

Locally optimal block preconditioned conjugate gradients (Knyazev 2001, SciPy's) on
(K + s M) phi = (w^2 + s) M phi; the shift s is small and taken off again. Rigid motions that
nothing holds are known beforehand and kept out of the block, so that a free body, or a piece that
hangs on nothing, costs no iterations for them. The start is fixed: the same bits every time.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, lobpcg

from pliant.core.errors import SolverFailure
from pliant.dynamics.implicit import ImplicitModel
from pliant.linalg.multigrid import Cycle, Multigrid

TOLERANCE = 1e-6
"""Residual |K phi - w^2 M phi| of a mode, by the inverse masses and over w^2. The error of w^2 is
about its square, that of the shape about the residual itself."""

CHUNK = 6
"""Iterations between two looks at the residuals; the block's directions are lost at each. SciPy's
answer is the iterate with the smallest residual as it measures it, which may be the first one: a
chunk that gained little is followed by one twice as long."""

SLOW = 0.3
"""Share of the residuals that a chunk leaves if it gained little."""

ROUNDED = 1e-4
"""Residual that will do where no more is gained."""

MOST = 200
"""Iterations in all. Twelve are usual, 40 for a beam a hundred times as long as thick."""

GUARDS = 4
"""Modes beyond those asked for, at least: the last of a block converge slowly. A torus of 49,412
nodes, whose modes come in pairs, takes 30 iterations with two, 18 with three and 12 with four."""

WIDTH = 8
"""Vectors that a cycle takes at once."""

UNHELD = 1e-6
"""A rigid motion whose w^2 is below this share of mu / (rho L^2) is held by nothing."""

LIGHTEST = 1e-3
"""Share of the heaviest node's mass below which a node counts as this heavy in a residual."""

PIECES = 64
"""Most pieces whose rigid motions are looked for; the largest ones."""

Progress = Callable[[int, int, float], None]
"""Told how many modes of how many are found, and the largest residual of the others."""


def iterated_modes(
    model: ImplicitModel, count: int, shift: float, progress: Progress | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """w^2 (count,) ascending and shapes (3 nodes, count) of unit modal mass.

    shift: s [1/s^2], positive. Raises SolverFailure if the modes do not converge.
    """
    return _Iteration(model, shift).run(count, progress)


class _Iteration:
    """The operators of a model and what LOBPCG does with them."""

    def __init__(self, model: ImplicitModel, shift: float):
        multigrid = model.preconditioner
        assert isinstance(multigrid, Multigrid)
        self._model, self._shift, self._n = model, shift, model.node_count
        model.assemble_rest(mass_factor=shift)
        self._free = model.boundary.free.reshape(-1, 1)
        multigrid.update(model.matrix, fresh=True)
        self._cycle = Cycle(multigrid, WIDTH)
        roots = np.sqrt(np.maximum(model.masses, LIGHTEST * model.masses.max()))
        light = sparse.diags_array(1.0 / roots)
        self._mass: Any = (light @ model.inertia.mass.to_scipy() @ light).tocsr()
        light = sparse.diags_array(np.repeat(1.0 / roots, 3))
        self._matrix: Any = (light @ model.matrix.to_scipy().tocsr() @ light).tocsr()
        self._root = np.repeat(roots, 3)[:, None]

    # operators on (3 nodes, k), zero where components are held; of vectors that are multiplied by
    # the roots of the masses, and of forces that are divided by them: a residual's plain norm is
    # then the one that bounds the error of w^2

    def stiffness(self, X: np.ndarray) -> np.ndarray:
        """(K + s M) X."""
        return self._free * (self._matrix @ np.ascontiguousarray(X).reshape(3 * self._n, -1))

    def mass(self, X: np.ndarray) -> np.ndarray:
        """M X: one number for each two nodes, whatever the component."""
        wide = np.ascontiguousarray(X).reshape(self._n, -1)
        return self._free * (self._mass @ wide).reshape(3 * self._n, -1)

    def cycle(self, R: np.ndarray) -> np.ndarray:
        """About (K + s M)^-1 R, in single precision."""
        R = self._root * R.reshape(3 * self._n, -1)
        out = np.empty_like(R)
        for first in range(0, R.shape[1], WIDTH):
            part = R[:, first : first + WIDTH]
            size = np.abs(part).max(axis=0)
            size = np.where(size > 0.0, size, 1.0)  # residuals get too small for single precision
            padded = np.zeros((self._n, 3, WIDTH), np.float32)
            padded[:, :, : part.shape[1]] = (part / size).reshape(self._n, 3, -1)
            self._cycle.b.assign(padded)
            self._cycle.run()
            found = self._cycle.z.numpy().reshape(3 * self._n, WIDTH)[:, : part.shape[1]]
            out[:, first : first + WIDTH] = found * size
        return self._root * out

    def _operator(self, product: Callable[[np.ndarray], np.ndarray]) -> Any:
        size = 3 * self._n
        made: Any = LinearOperator
        return made((size, size), matvec=product, matmat=product, dtype=float)

    # the iteration -------------------------------------------------------------------------------

    def run(self, count: int, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
        """See `iterated_modes`."""
        rigid = self.rigid_motions()
        wanted = count - rigid.shape[1]
        if wanted <= 0:
            return np.zeros(count), rigid[:, :count] / self._root
        values, X = self._elastic(wanted, rigid, progress)
        values = np.concatenate([np.zeros(rigid.shape[1]), values])
        return values, np.hstack([rigid, X]) / self._root

    def _elastic(
        self, wanted: int, rigid: np.ndarray, progress: Progress | None
    ) -> tuple[np.ndarray, np.ndarray]:
        block = wanted + max(GUARDS, wanted // 3)
        start = np.random.default_rng(0).standard_normal((3 * self._n, block))
        X = self.cycle(self.mass(self._free * start))
        A, B, T = (self._operator(f) for f in (self.stiffness, self.mass, self.cycle))
        given = {"B": B, "M": T, "Y": rigid if rigid.shape[1] else None}
        worst, chunk, left_over = np.inf, CHUNK, MOST
        while left_over > 0:
            chunk = min(chunk, left_over)
            left_over -= chunk
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it has not converged: it was told to stop
                values, X = lobpcg(A, X, tol=1e-300, maxiter=chunk, largest=False, **given)
            if not (np.isfinite(values).all() and np.isfinite(X).all()):
                break
            order = np.argsort(values, kind="stable")
            values, X = values[order], X[:, order]
            left = self._residuals(values[:wanted], X[:, :wanted])
            before, worst = worst, float(left.max())
            if progress is not None:
                progress(int((left <= TOLERANCE).sum()), wanted, worst)
            slow = worst > SLOW * before
            # where even long chunks gain nothing, rounding holds it up
            if worst <= TOLERANCE or (slow and chunk > 2 * CHUNK and worst <= ROUNDED):
                return np.maximum(values[:wanted] - self._shift, 0.0), X[:, :wanted]
            chunk = 2 * chunk if slow else chunk
        raise SolverFailure(
            f"The modes did not converge in {MOST} iterations (residual {worst:.1e}): ask for "
            "fewer or more of them, or use a larger spacing."
        )

    def _residuals(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Of each mode, relative; see TOLERANCE."""
        R = self.stiffness(X) - self.mass(X) * values
        scale = np.maximum(values - self._shift, 1e-3 * self._shift)
        return np.linalg.norm(R, axis=0) / scale

    # rigid motions -------------------------------------------------------------------------------

    def rigid_motions(self) -> np.ndarray:
        """Motions (3 nodes, k) of pieces that nothing holds, of unit mass and orthogonal by it."""
        matrix, n = self._model.matrix, self._n
        start, columns = matrix.row_start.numpy(), matrix.columns.numpy()
        graph = sparse.csr_matrix((np.ones(len(columns), np.int8), columns, start), (n, n))
        pieces, piece = connected_components(graph, directed=False)
        sizes = np.bincount(piece, minlength=pieces)
        largest = np.argsort(-sizes, kind="stable")[:PIECES]
        found = [self._unheld(np.flatnonzero(piece == k)) for k in largest]
        return np.hstack([np.zeros((3 * n, 0)), *found])

    def _unheld(self, nodes: np.ndarray) -> np.ndarray:
        """Rigid motions of one piece, by the null space of their energy."""
        body = self._model.scene.body
        x = np.zeros((len(nodes), 3))
        x[:, : body.dim] = body.nodes[nodes]
        x -= x.mean(axis=0)
        local = np.zeros((len(nodes), 3, 6))
        local[:, [0, 1, 2], [0, 1, 2]] = 1.0
        for d in range(3):  # turns about x, y, z
            i, j = (d + 1) % 3, (d + 2) % 3
            local[:, i, 3 + d], local[:, j, 3 + d] = -x[:, j], x[:, i]
        if body.dim == 2:
            local = local[:, :, [0, 1, 5]]
        R = np.zeros((self._n, 3, local.shape[2]))
        R[nodes] = local
        free = self._model.boundary.free.reshape(self._n, 3)
        R[:, body.dim :] = 0.0
        R = _orthonormal(self._root * R.reshape(3 * self._n, -1), self.whole_mass)
        # held components that a motion moves: over the square of its mean
        moves = R / self._root
        moved = moves[(free == 0.0).reshape(-1)]
        held = moved.T @ moved * (len(nodes) / max(float(np.sum(moves * moves)), 1e-300))
        energy = R.T @ (self._matrix @ R) - self._shift * np.eye(R.shape[1])
        values, vectors = np.linalg.eigh(energy / (UNHELD * self._scale()) + held / UNHELD)
        return R @ vectors[:, values < 1.0]

    def whole_mass(self, X: np.ndarray) -> np.ndarray:
        """M X on all components."""
        return (self._mass @ np.ascontiguousarray(X).reshape(self._n, -1)).reshape(X.shape)

    def _scale(self) -> float:
        """mu / (rho L^2) of the body [1/s^2]."""
        return stiffness_to_mass(self._model)


def stiffness_to_mass(model: ImplicitModel) -> float:
    """mu / (rho L^2) of a body of length L [1/s^2]: the scale of w^2."""
    body = model.scene.body
    extent = float(np.ptp(body.nodes, axis=0).max())
    density = float(model.masses.sum()) / max(body.volume, 1e-300)
    return float(np.mean(model.mu)) / (density * extent**2)


def _orthonormal(R: np.ndarray, mass: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The same motions with R^T M R = 1; what has no mass of its own is left out."""
    values, vectors = np.linalg.eigh(R.T @ mass(R))
    kept = values > 1e-12 * values.max()
    return R @ (vectors[:, kept] / np.sqrt(values[kept]))
