"""Which coarse matrix: of the coarsened field, or the Galerkin product P^T A P?

Conjugate gradients with a cycle of two levels, one Gauss-Seidel sweep down and one up and the
coarse system solved exactly, so that only the coarse matrix differs. Prints the table of
docs/solver.md:

    python benchmarks/coarse_matrices.py
"""

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg, splu

import pliant as pl
from pliant.app.describing.scenes import load_builtin
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.step_problem import StepProblem
from pliant.fem.bodies.body import Body

RELATIVE, MOST = 1e-6, 300


def matrix(scene: pl.Scene) -> sparse.csc_matrix:
    """The matrix of the first step."""
    system = ImplicitModel(replace(scene, model="corotated-frozen"))
    StepProblem(system, system.initial_state(), system.scene.integrator).prepare()
    return system.matrix.to_scipy().tocsc()


def interpolation(fine: Body, coarse: Body) -> sparse.csc_matrix:
    """Trilinear, from the coarse nodes to the fine ones; parents that do not exist are left out."""
    h, dim = coarse.spacing, fine.nodes.shape[1]
    number = {tuple(place): k for k, place in enumerate(np.rint(coarse.nodes / h).astype(int))}
    at = fine.nodes / h
    base = np.floor(at + 1e-9).astype(int)
    part = np.clip(at - base, 0.0, 1.0)
    rows, columns, weights = [], [], []
    for corner in np.ndindex(*(2,) * dim):
        w = np.prod(np.where(corner, part, 1.0 - part), axis=1)
        for i in np.flatnonzero(w > 1e-9):
            parent = number.get(tuple(base[i] + corner))
            if parent is not None:
                rows.append(i)
                columns.append(parent)
                weights.append(w[i])
    shape = (len(fine.nodes), len(coarse.nodes))
    scalar = sparse.csr_matrix((weights, (rows, columns)), shape)
    return sparse.kron(scalar, sparse.eye(3)).tocsc()


def iterations(A: sparse.csc_matrix, P: sparse.csc_matrix, coarse: sparse.csc_matrix) -> int:
    """Of conjugate gradients with the cycle of two levels, from zero for a smooth load."""
    used = np.flatnonzero(np.asarray(abs(P).sum(axis=0)).ravel() > 0.0)
    P, coarse = P[:, used], coarse[used][:, used].tocsc()
    solve = splu(coarse).solve
    natural = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.0}
    down = splu(sparse.tril(A).tocsc(), **natural).solve
    up = splu(sparse.triu(A).tocsc(), **natural).solve

    def cycle(b):
        x = down(b)
        x = x + P @ solve(P.T @ (b - A @ x))
        return x + up(b - A @ x)

    steps: list[float] = []
    b = A @ np.sin(np.arange(A.shape[0]) // 3 / 50.0)
    M = LinearOperator(A.shape, cycle)
    _, failed = cg(A, b, rtol=RELATIVE, M=M, maxiter=MOST, callback=lambda _: steps.append(0.0))
    return MOST if failed else len(steps)


def main() -> None:
    """The table."""
    torus = load_builtin("torus")
    shape = torus.body.shape
    print("| time step | nodes | coarsened field | Galerkin |")
    print("|---|---|---|---|")
    for spacing in (0.2, 0.1, 0.08):
        for dt in (0.02, 10.0):
            scheme = pl.Newmark1(dt=dt, theta=0.6)
            scene = replace(torus, body=pl.GridBody(shape, spacing), integrator=scheme)
            wide = replace(scene, body=pl.GridBody(shape, 2.0 * spacing))
            A, P = matrix(scene), interpolation(scene.body, wide.body)
            counts = [iterations(A, P, c) for c in (matrix(wide), P.T @ A @ P)]
            step = f"{dt} s" if dt < 1.0 else "as in statics"
            print(f"| {step} | {len(scene.body.nodes):,} | {counts[0]} | {counts[1]} |", flush=True)


if __name__ == "__main__":
    main()
