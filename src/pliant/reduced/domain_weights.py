"""How a domain's influence fades: weights by elasticity along a principal direction, or harmonic.

Elastic (seed 004, eq. 3.8 to 3.12): of all displacements about the rest whose part along p is 1 at
the domain's own seed, 0 at the other seeds and 0 at the walls, but free across p (principal
projection), the one of least energy; its part along p is the weight. p is the direction in which
the domains give most: the main axis of the sum of their compliances, each of trace one. One
direction for all: on a square section that of a single domain is not unique, and weights along
different ones do not fit together.

Every domain reaches over the whole body. Where one ended, its weight would have a kink, which bends
what follows it sharply: a clamped beam cut into 5 domains that end at their neighbours' borders is
wrong by 22 to 52 %, one whose domains do not end by 3 %.

A seed's value is the mean over a ball, not that of a node: the finer a mesh, the more a single node
gives way to a force on it.

Harmonic, for comparison: Laplace's equation, with balls as the seeds.
"""

from dataclasses import dataclass, replace

import numpy as np
import warp as wp
from scipy import sparse
from scipy.sparse.linalg import cg, splu

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import PENALTY_SWEEPS, ImplicitModel
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.solver_nodes import solver_nodes
from pliant.linalg.blocks import BlockMatrix, diagonal_places
from pliant.linalg.multigrid import Multigrid
from pliant.linalg.pcg import ConjugateGradients, Tolerance
from pliant.reduced.reduction import quadrature
from pliant.reduced.rest_solver import DIRECT_NODES, full_scene
from pliant.reduced.segments import Segments
from pliant.reduced.supports_of_span import nodal_supports

BALL = 0.3
"""Radius of a seed over that of a ball of the segment's volume."""

ENOUGH = 1e-8
"""Relative residual of a solve: seeds that are close to each other give nearly the same."""

UNHELD = 1e-5
"""Share of mu / (rho L^2) times the masses that keeps a body in its place which nothing holds."""


FREELY = 1e-3
"""The same of what moves a held body across p, where its walls let it."""


SLIVER = 0.1
"""Least weight of a quadrature point in Laplace's equation, over the median."""


@dataclass(frozen=True)
class Fading:
    """weights: (nodes, domains); direction: p (dim,), of elastic ones."""

    weights: np.ndarray
    direction: np.ndarray | None


def seed_balls(scene: Scene, segments: Segments) -> np.ndarray:
    """Weights (nodes, seeds) whose columns take the mean over each seed's ball; sums of one."""
    body = scene.body
    unit = np.pi if body.dim == 2 else 4.0 / 3.0 * np.pi
    volumes = np.bincount(segments.of, body.cell_volumes, segments.count)
    of_node = np.bincount(body.cells.reshape(-1), body.node_volumes.reshape(-1), len(body.nodes))
    out = np.zeros((len(body.nodes), segments.count))
    for j, seed in enumerate(segments.seeds):
        reach = BALL * (volumes[j] / unit) ** (1.0 / body.dim)
        away = np.linalg.norm(body.nodes - seed, axis=1)
        ball = away <= max(reach, float(away.min()) * (1.0 + 1e-9))
        out[ball, j] = of_node[ball] / of_node[ball].sum()
    return out


def elastic_weights(scene: Scene, segments: Segments) -> Fading:
    """Weights by elasticity along one direction for all domains."""
    own, balls = _Stiffness(scene), seed_balls(scene, segments)
    direction = own.direction(balls)
    fields = own.along(balls, direction)
    weights = fields @ np.linalg.inv(balls.T @ fields)
    return Fading(_filled(scene, weights), direction)


def harmonic_weights(scene: Scene, segments: Segments) -> Fading:
    """Weights by Laplace's equation."""
    body = scene.body
    rule = quadrature(scene, means=False)
    balls = seed_balls(scene, segments) > 0.0
    held = balls.any(axis=1) | _held_nodes(scene)
    value = balls.astype(float)
    if not (held & ~balls[:, 0]).any():
        return Fading(np.ones((len(body.nodes), 1)), None)
    full = np.maximum(rule.weights, SLIVER * float(np.median(rule.weights)))  # or slivers are loose
    L = _laplacian(body, full, rule.cells, rule.gradients)
    free = np.flatnonzero(~held)
    inner, right = L[free][:, free], -(L @ value)[free]
    if len(free) <= 3 * DIRECT_NODES[scene.dim]:
        value[free] = splu(inner.tocsc(), permc_spec="MMD_AT_PLUS_A").solve(right)
    else:
        near = sparse.diags(1.0 / inner.diagonal())
        for j in range(segments.count):
            value[free, j], wrong = cg(inner, right[:, j], rtol=1e-6, maxiter=5_000, M=near)
            if wrong:
                raise SolverFailure("The harmonic weights of a domain did not converge.")
    return Fading(_filled(scene, value), None)


def _laplacian(body, weights, cells, gradients):
    nodes = body.cells[cells]
    blocks = np.einsum("p,pai,pbi->pab", weights, gradients, gradients)
    k = nodes.shape[1]
    i, j = np.repeat(nodes, k, axis=1).reshape(-1), np.tile(nodes, (1, k)).reshape(-1)
    n = len(body.nodes)
    return sparse.csr_matrix((blocks.reshape(-1), (i, j)), (n, n))


def _filled(scene: Scene, weights: np.ndarray) -> np.ndarray:
    """Weights of a body without walls made to sum to one, so that it can move as a whole.

    What is lacking, 1 - sum w, goes to the domains by w^2 / sum w^2, which is smooth.
    """
    if scene.fixed:
        return weights
    squares = weights**2
    lacking = 1.0 - weights.sum(axis=1, keepdims=True)
    return weights + lacking * squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300)


def _held_nodes(scene: Scene) -> np.ndarray:
    """Nodes that walls hold: strongly, or as corners of cells that a wall cuts."""
    boundary, _ = nodal_supports(scene)
    held = (boundary.free[:, : scene.dim] == 0.0).all(axis=1)
    if boundary.walls is not None:
        held[scene.body.cells[boundary.walls.cell].reshape(-1)] = True
    return held


class _Stiffness:
    """The body's rest stiffness: K of the cells and W of the walls, in blocks of its pattern."""

    def __init__(self, scene: Scene):
        self.scene, self.body = scene, scene.body
        model = ImplicitModel(replace(full_scene(scene), fixed=()))
        boundary, W = nodal_supports(scene)
        self.free = boundary.free.copy()
        extent = float(np.ptp(self.body.nodes, axis=0).max())
        density = float(model.masses.sum()) / self.body.volume
        self.stiff = float(np.mean(model.mu)) / (density * extent**2)
        self.masses = model.masses
        self.walled = np.zeros(len(self.body.cells), bool)
        if boundary.walls is not None:
            self.walled[boundary.walls.cell] = True
        shift = 0.0 if scene.fixed else UNHELD * self.stiff
        matrix = BlockMatrix(self.body.pattern, np.ones_like(self.free))
        model.elasticity.assemble(
            matrix, model.inertia.mass, mass_factor=shift, stiffness_factor=1.0
        )
        self.cells = matrix.values.numpy().reshape(-1, 3, 3).copy()
        self.walls = _as_blocks(W, self.body)

    def direction(self, balls: np.ndarray) -> np.ndarray:
        """p: the main axis of the sum of the domains' compliances (eq. 3.9 to 3.12)."""
        d, count = self.scene.dim, balls.shape[1]
        solver = _Solver(self.scene, self.cells + self.walls, self.free)
        fields = np.empty((count, d, len(balls), d))
        for j in range(count):
            for i in range(d):
                force = np.zeros((len(balls), 3))
                force[:, i] = balls[:, j]
                fields[j, i] = solver.solve(force * self.free)[:, :d]
        flat = fields.reshape(count * d, -1)
        at_seeds = np.einsum("jinc,nk->kcji", fields, balls).reshape(count * d, count * d)
        total = np.zeros((d, d))
        for j in range(count):
            own = np.arange(d * j, d * j + d)
            others = np.setdiff1d(np.arange(count * d), own)
            free = flat[own]
            if len(others):  # which stay where they are
                held = np.linalg.solve(
                    at_seeds[np.ix_(others, others)], at_seeds[np.ix_(others, own)]
                )
                free = free - held.T @ flat[others]
            B = free @ free.T
            total += B / max(float(np.trace(B)), 1e-300)
        p = np.linalg.eigh(total)[1][:, -1]
        return p * np.sign(p[np.argmax(np.abs(p))])

    def along(self, balls: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Displacements along p (nodes, seeds) by forces along p on each ball, walls projected."""
        d = self.scene.dim
        R = np.eye(3)
        R[:d, :d] = _frame(direction)
        blocks = R @ self.cells @ R.T
        blocks[:, 0, 0] += (R @ self.walls @ R.T)[:, 0, 0]
        free = np.ones_like(self.free)
        free[:, d:] = 0.0
        free[(self.free[:, :d] == 0.0).all(axis=1), 0] = 0.0
        middle = diagonal_places(self.body.pattern)
        for i in range(1, d):  # what nothing holds across p
            blocks[middle, i, i] += FREELY * self.stiff * self.masses
        stiff = np.unique(self.body.cells[self.walled].reshape(-1)) if self.walled.any() else None
        solver, out = _Solver(self.scene, blocks, free, stiff), np.empty_like(balls)
        for j in range(balls.shape[1]):
            force = np.zeros_like(free)
            force[:, 0] = balls[:, j]
            out[:, j] = solver.solve(force * free)[:, 0]
        return out


def _as_blocks(W: sparse.csr_matrix, body) -> np.ndarray:
    """A matrix over the nodes' components (nodes dim) as blocks (blocks, 3, 3) of the pattern."""
    n, d, pattern = len(body.nodes), body.dim, body.pattern
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(pattern.row_start))
    keys = rows * n + pattern.columns
    order = np.argsort(keys, kind="stable")
    entries = W.tocoo()
    wanted = (entries.row // d).astype(np.int64) * n + entries.col // d
    at = order[np.searchsorted(keys[order], wanted)]
    out = np.zeros((len(keys), 3, 3))
    np.add.at(out, (at, entries.row % d, entries.col % d), entries.data)
    return out


def _frame(direction: np.ndarray) -> np.ndarray:
    """A rotation (dim, dim) whose first row is the direction."""
    d = len(direction)
    full = np.linalg.qr(np.column_stack([direction, np.eye(d)]))[0].T
    return full * np.sign(full[0] @ direction)


class _Solver:
    """A solve with blocks of the body's pattern on some free components."""

    def __init__(
        self, scene: Scene, blocks: np.ndarray, free: np.ndarray, stiff: np.ndarray | None = None
    ):
        """stiff: nodes at walls that are held by penalties."""
        body = scene.body
        self.matrix = BlockMatrix(body.pattern, free)
        self.matrix.values.assign(blocks)
        self._free = np.flatnonzero(free.reshape(-1))
        self._factor = None
        if len(body.nodes) <= DIRECT_NODES[scene.dim]:
            K = self.matrix.to_scipy().tocsr()[self._free][:, self._free].tocsc()
            self._factor = splu(K, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
            return
        multigrid = Multigrid(solver_nodes(body), free)
        if stiff is not None:
            multigrid.expect_stiff(stiff, PENALTY_SWEEPS)
        multigrid.update(self.matrix, fresh=True)
        self._solver = ConjugateGradients(self.matrix, multigrid)

    def solve(self, force: np.ndarray) -> np.ndarray:
        """u (nodes, 3), zero where held."""
        if self._factor is not None:
            out = np.zeros(force.size)
            out[self._free] = self._factor.solve(force.reshape(-1)[self._free])
            return out.reshape(force.shape)
        x = zeros(len(force), wp.vec3d)
        found = self._solver.solve(to_device(force, wp.vec3d), x, Tolerance(relative=ENOUGH))
        if not found.outcome.ok and found.residual > 1e3 * found.target:
            raise SolverFailure(f"The weights of a domain: {found.outcome.value}.")
        return x.numpy().copy()
