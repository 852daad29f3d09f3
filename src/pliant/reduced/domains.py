"""Overlapping quadratic domains: displacements that are quadratic in X around each seed.

    u_i = sum_j w_j(X) (t_i^j + a_i^j . x + q_o_i^j . x~ + q_e_i^j . x^)   (seed 004, eq. 3.1)

x the place relative to the seed, x~ its squares and x^ its mixed products: 10 scalar functions a
domain in space, 30 numbers (in the plane 6 and 12). The functions of a domain are made orthonormal
by their masses, which changes the numbers and not the motions; what domains that cover each other
have twice is left out. Those of a body that nothing holds begin with 1 and the coordinates.
"""

from typing import Any

import numpy as np

from pliant.dynamics.scene import Scene
from pliant.fem.forces.mass import MassMatrix
from pliant.reduced.domain_weights import elastic_weights, harmonic_weights
from pliant.reduced.reduction import Domains
from pliant.reduced.segments import segmented
from pliant.reduced.spans import ScalarSpan

TWICE = 1e-7
"""Part (by mass) of a function that the others do not have, below which it is left out."""

KINDS = {"elastic": elastic_weights, "harmonic": harmonic_weights}


def domain_span(scene: Scene, numbers: Any) -> tuple[ScalarSpan, Domains]:
    """The span that a scene's numbers ask for."""
    segments = segmented(scene.body, numbers.domains)
    fading = KINDS[numbers.weights](scene, segments)
    own = Domains(segments.seeds, segments.of, fading.weights, fading.direction)
    return quadratic_span(scene, own), own


def polynomials(places: np.ndarray, degree: int = 2) -> np.ndarray:
    """1, the coordinates, their squares and mixed products at places (n, dim): (n, 10) or (n, 6).

    degree: 0, 1 or 2.
    """
    n, d = places.shape
    out = [np.ones(n)]
    if degree > 0:
        out += list(places.T)
    if degree > 1:
        out += [x * x for x in places.T]
        out += [places[:, i] * places[:, j] for i in range(d) for j in range(i)]
    return np.stack(out, axis=1)


def quadratic_span(scene: Scene, domains: Domains, *, degree: int = 2) -> ScalarSpan:
    """The functions of all domains; degree: of their polynomials, 2 unless compared with less."""
    body = scene.body
    mass = MassMatrix(body)
    mass.set_density(scene.cell_material.densities(len(body.cells)))
    M = mass.to_scipy()
    found = []
    if not scene.fixed:  # to rounding, whatever is left out of the domains
        X = body.nodes - body.nodes.mean(axis=0)
        found.append(_independent(polynomials(X / float(np.abs(X).max()), 1), M))
    for j, seed in enumerate(domains.seeds):
        x = body.nodes - seed
        own = polynomials(x / float(np.abs(x).max()), degree) * domains.weights[:, j : j + 1]
        found.append(_independent(own, M))
    return ScalarSpan.of(_not_twice(np.hstack(found), M), body.dim)


def _independent(functions: np.ndarray, M) -> np.ndarray:
    """Orthonormal by mass: the same span, without what has no mass of its own."""
    gram = functions.T @ (M @ functions)
    size = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = np.linalg.eigh(size[:, None] * gram * size)
    kept = values > TWICE * values.max()
    return (functions * size) @ (vectors[:, kept] / np.sqrt(values[kept]))


def _not_twice(functions: np.ndarray, M) -> np.ndarray:
    """Without the functions that those before them make up (a Cholesky factor's small pivots)."""
    gram = functions.T @ (M @ functions)
    kept: list[int] = []
    rows = np.zeros_like(gram)
    for k in range(len(gram)):
        row = gram[k, kept]
        for i in range(len(kept)):
            row[i] = (row[i] - rows[i, :i] @ row[:i]) / rows[i, i]
        left = gram[k, k] - row @ row
        if left > TWICE * gram[k, k]:
            rows[len(kept), : len(kept)] = row
            rows[len(kept), len(kept)] = np.sqrt(left)
            kept.append(k)
    return functions[:, kept]
