"""Spans of modes: with modal derivatives for held bodies, closed under turns for free ones.

Held: the modes phi_i and the derivatives psi_ij and chi_ijk of dynamics.modal_derivatives, each
scaled by the products of w_1 / w_i (Barbic and James 2005), beside them what the body's weight and
its loads do at rest; made orthonormal by their masses.

Free: a body that turns by R moves by (R - I) X + R sum_i q_i phi_i(X), which no span of fixed
fields holds for all R but one of scalar functions: 1, the coordinates, and the components of the
modes, each of which every component of the displacement may take. So no moving frame is needed, and
a rigid motion is in the span to rounding.
"""

from itertools import combinations_with_replacement

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.vectors import in_space
from pliant.dynamics.modal_derivatives import ForceDerivatives
from pliant.dynamics.modes import modes
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import simulate
from pliant.fem.forces.mass import MassMatrix
from pliant.reduced.rest_solver import RestSolver, full_scene
from pliant.reduced.spans import ScalarSpan, Span, VectorSpan

SMALLEST = 1e-8
"""Part of a vector that no other one has, below which it is left out: orthonormal vectors made of
less are rounding. The square of it is an eigenvalue of the products of masses."""

RIGID = {2: 3, 3: 6}


def modal_span(scene: Scene, count: int, order: int, most: int) -> Span:
    """The span of `count` elastic modes of a scene."""
    own = full_scene(scene)
    rigid = 0 if scene.fixed else RIGID[scene.dim]
    free = scene.body.nodes.size
    if count + rigid >= free - 1:
        raise BadInput(
            f"numbers.modes: {count} are more than a body of {len(scene.body.nodes)} nodes has."
        )
    if scene.fixed:
        return orthonormal(scene, _with_derivatives(own, count, order), most)
    found = modes(own, count + rigid)
    shapes = found.shapes[rigid:]
    return turning_span(scene, shapes, most)


def pod_span(scene: Scene, steps: int, most: int) -> Span:
    """The span of the displacements of a full run of so many steps."""
    run = simulate(full_scene(scene), steps)
    return snapshot_span(scene, run.displacements[1:], most)


def snapshot_span(scene: Scene, shapes: np.ndarray, most: int) -> Span:
    """The principal shapes of displacements (frames, nodes, dim), the largest first.

    Of a free body, their components: it may then turn as the snapshots did not.
    """
    if not np.isfinite(shapes).all() or not np.any(shapes):
        raise BadInput("The run that a basis was asked of does not move: give it more steps.")
    if scene.fixed:
        return orthonormal(scene, shapes, most or len(shapes))
    return turning_span(scene, shapes, most)


def _with_derivatives(scene: Scene, count: int, order: int) -> np.ndarray:
    """Modes and their derivatives, scaled, (vectors, nodes, dim)."""
    found = modes(scene, count)
    shapes = in_space(found.shapes)
    share = found.frequencies[0] / np.maximum(found.frequencies, 1e-300)
    out = [share[i] * shapes[i] for i in range(count)]
    solver = RestSolver(scene)
    out += [field / np.abs(field).max() * np.abs(shapes[0]).max() for field in _sags(scene, solver)]
    if order > 0:
        third = ForceDerivatives(solver.model)
        size = float(np.abs(shapes[0]).max())
        first: dict[tuple[int, ...], np.ndarray] = {}
        for i, j in combinations_with_replacement(range(count), 2):
            first[i, j] = solver.solve(-third(shapes[i], shapes[j]))
            out.append(share[i] * share[j] * size * first[i, j])
        triples = combinations_with_replacement(range(count), 3) if order > 1 else ()
        for i, j, k in triples:
            right = third(shapes[i], shapes[j], shapes[k])
            for a, b, c in ((i, j, k), (j, k, i), (i, k, j)):
                right = right + third(first[min(a, b), max(a, b)], shapes[c])
            chi = solver.solve(-right)
            out.append(share[i] * share[j] * share[k] * size**2 * chi)
    return np.array(out)[:, :, : scene.dim]


def _sags(scene: Scene, solver: RestSolver) -> list[np.ndarray]:
    """Where the body goes under its own weight along each axis, and under the scene's loads.

    The lowest modes need not hold it: a ring that hangs stretches, which is none of them.
    """
    model = solver.model
    forces = [model.masses[:, None] * axis for axis in np.eye(3)[: scene.dim]]
    loads = model.boundary.load_forces(0.0)
    if np.any(loads):
        forces.append(loads)
    return [solver.solve(force * model.boundary.free) for force in forces]


def orthonormal(scene: Scene, shapes: np.ndarray, most: int = 0) -> VectorSpan:
    """Fields (vectors, nodes, dim) of unit mass, the heaviest first; at most `most`, 0: all."""
    n, d = shapes.shape[1:]
    M = _mass(scene)
    sizes = np.sqrt(np.maximum(np.einsum("vni,vni->v", shapes, _weighed(M, shapes)), 1e-300))
    largest = float(sizes.max())
    kept = sizes > SMALLEST * largest
    flat = shapes[kept].reshape(-1, n * d)
    heavy = _weighed(M, shapes[kept]).reshape(-1, n * d)
    values, vectors = np.linalg.eigh(flat @ heavy.T)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > SMALLEST**2 * 1e4 * values.max()]
    if most:
        order = order[:most]
    basis = (vectors[:, order] / np.sqrt(values[order])).T @ flat
    for _ in range(1):  # once more: the small ones have lost digits
        again = basis @ _weighed(M, basis.reshape(-1, n, d)).reshape(-1, n * d).T
        basis = np.linalg.solve(np.linalg.cholesky(again), basis)
    signs = np.sign(basis[np.arange(len(basis)), np.argmax(np.abs(basis), axis=1)])
    basis = (basis * signs[:, None]).reshape(-1, n, d)
    return VectorSpan(basis.transpose(1, 2, 0))


def turning_span(scene: Scene, shapes: np.ndarray, most: int = 0) -> ScalarSpan:
    """The scalar span of 1, the coordinates and the components of shapes (vectors, nodes, dim).

    most: numbers in q.
    """
    n, d = scene.body.nodes.shape
    components = shapes.transpose(0, 2, 1).reshape(-1, n)
    X = scene.body.nodes - scene.body.nodes.mean(axis=0)
    affine = np.vstack([np.ones(n), X.T / float(np.abs(X).max())])
    M = _mass(scene)
    L = np.linalg.cholesky(affine @ (M @ affine.T))
    affine = np.linalg.solve(L, affine)
    for _ in range(2):
        components = components - (components @ (M @ affine.T)) @ affine
    own = orthonormal_functions(components, M, (most // d - d - 1) if most else 0)
    return ScalarSpan.of(np.vstack([affine, own]).T, d)


def orthonormal_functions(functions: np.ndarray, M, most: int = 0) -> np.ndarray:
    """Scalar functions (functions, nodes) of unit mass, the heaviest first."""
    gram = functions @ (M @ functions.T)
    values, vectors = np.linalg.eigh(gram)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > SMALLEST**2 * 1e4 * max(float(values.max()), 1e-300)]
    if most:
        order = order[: max(most, 0)]
    basis = (vectors[:, order] / np.sqrt(values[order])).T @ functions
    again = basis @ (M @ basis.T)
    return np.linalg.solve(np.linalg.cholesky(again), basis) if len(basis) else basis


def _mass(scene: Scene):
    own = MassMatrix(scene.body)
    own.set_density(scene.cell_material.densities(len(scene.body.cells)))
    return own.to_scipy()


def _weighed(M, shapes: np.ndarray) -> np.ndarray:
    v, n, d = shapes.shape
    return (M @ shapes.transpose(1, 0, 2).reshape(n, v * d)).reshape(n, v, d).transpose(1, 0, 2)
