"""Frequency design (seed 004, section 4.8.4): change an arch until it vibrates as wanted.

A wind is an acceleration field a; the arch answers u = K^-1 M a, and the Rayleigh quotient of u is
the squared frequency the wind excites,

    w^2(l, b, t) = a^T M K^-1 M a / (a^T M K^-1 M K^-1 M a)       (eq. 4.40, a per node),

of the length l, the width b and the rise t. Newton's method minimises (w*^2 - w^2)^2, its gradient
and Hessian by multicomplex steps through K and M: the solves are those of the Cauchy-Riemann form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.complexstep import tensors
from pliant.complexstep.derivatives import mixed_partial
from pliant.complexstep.multicomplex import Multicomplex, order_of
from pliant.core.errors import BadInput

CORNERS = np.array([[(a >> d) & 1 for d in range(3)] for a in range(8)])
SIX = np.array([[0, 1, 3, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 6, 4, 7], [0, 4, 5, 7], [0, 5, 1, 7]])
"""A cube as six tetrahedra around its diagonal."""


@dataclass(frozen=True)
class Arch:
    """A slab, held at both ends, that rises as a parabola: x along, y up, z across.

    thickness [m]; counts: cells along, up, across; youngs_modulus [Pa], density [kg/m^3].
    """

    thickness: float = 0.1
    counts: tuple[int, int, int] = (10, 1, 2)
    youngs_modulus: float = 1e6
    poisson_ratio: float = 0.3
    density: float = 1000.0

    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit positions (nodes, 3) and tetrahedra (cells, 4)."""
        n = np.array(self.counts) + 1
        index = np.arange(n.prod()).reshape(n)
        unit = np.stack(np.meshgrid(*(np.linspace(0, 1, k) for k in n), indexing="ij"), axis=-1)
        cells = []
        for i, j, k in np.ndindex(*self.counts):
            cube = index[tuple((np.array([i, j, k]) + CORNERS).T)]
            cells.append(cube[SIX])
        return unit.reshape(-1, 3), np.concatenate(cells)

    def matrices(self, length: Any, width: Any, rise: Any) -> tuple[Any, Any, np.ndarray]:
        """K (free, free), lumped M (free,) for numbers of any order, and the free components."""
        unit, cells = self.grid()
        X = [
            unit[:, 0] * length,
            unit[:, 1] * self.thickness + 4.0 * unit[:, 0] * (1.0 - unit[:, 0]) * rise,
            unit[:, 2] * width,
        ]
        c = [[X[d][cells[:, a]] for d in range(3)] for a in range(4)]
        D = [[c[a + 1][d] - c[0][d] for d in range(3)] for a in range(3)]  # rows are edges
        cof = [[_minor(D, i, j) for j in range(3)] for i in range(3)]
        det = sum(D[0][j] * cof[0][j] for j in range(3))
        sign = np.where(_real(det) < 0.0, -1.0, 1.0)
        volume = det * sign / 6.0
        g: list[list[Any]] = [[None] * 3 for _ in range(4)]
        for a in range(3):
            for j in range(3):
                g[a + 1][j] = cof[a][j] / det
        for j in range(3):
            g[0][j] = -(g[1][j] + g[2][j] + g[3][j])
        E, nu = self.youngs_modulus, self.poisson_ratio
        lam, mu = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
        size = 3 * len(unit)
        rows, cols, parts = [], [], []
        for a in range(4):
            for b in range(4):
                dot = sum(g[a][k] * g[b][k] for k in range(3)) * mu
                for i in range(3):
                    for j in range(3):
                        value = g[a][i] * g[b][j] * lam + g[b][i] * g[a][j] * mu
                        parts.append(volume * (value + dot if i == j else value))
                        rows.append(3 * cells[:, a] + i)
                        cols.append(3 * cells[:, b] + j)
        ends = (unit[:, 0] == 0.0) | (unit[:, 0] == 1.0)
        free = np.flatnonzero(~np.repeat(ends, 3))
        place = np.concatenate(rows) * size + np.concatenate(cols)
        K = _each(
            lambda *a: np.bincount(place, np.concatenate(a), size * size).reshape(size, size)[
                np.ix_(free, free)
            ],
            *parts,
        )
        node, share = cells.T.reshape(-1), [volume * (self.density / 4.0)] * 4
        mass = _each(lambda *a: np.bincount(node, np.concatenate(a), len(unit))[free // 3], *share)
        return K, mass, free

    def squared_frequency(self, length: Any, width: Any, rise: Any, wind: Sequence[float]) -> Any:
        """w^2 [1/s^2] that a uniform acceleration `wind` (3,) excites."""
        K, m, free = self.matrices(length, width, rise)
        a = np.asarray(wind, float)[free % 3]
        Ma = m * a
        u = _each(lambda a: a[:, 0], tensors.solve(K, _each(lambda a: a[:, None], Ma)))
        return _each(np.sum, Ma * u) / _each(np.sum, u * (m * u))


@dataclass(frozen=True)
class Design:
    """The dimensions found, w^2 there, and the misfit of every iteration."""

    dimensions: np.ndarray
    squared_frequency: float
    history: list[float]


def design_arch(
    arch: Arch,
    start: Sequence[float],
    target: float,
    *,
    wind: Sequence[float] = (0, 1, 0),
    iterations: int = 20,
    tolerance: float = 1e-10,
) -> Design:
    """(length, width, rise) from `start` until w^2 = target, by Newton's method with damping."""
    x = np.asarray(start, float)
    if x.shape != (3,) or (x <= 0.0).any() or target <= 0.0:
        raise BadInput("A design needs three positive dimensions and a positive target.")
    scale = 1.0 / target

    def misfit(length, width, rise):
        r = arch.squared_frequency(length, width, rise, wind) * scale - 1.0
        return r * r

    history = [float(misfit(*x))]
    damping = 1e-6
    while history[-1] > tolerance**2 and len(history) <= iterations:
        eye: Any = np.eye(3, dtype=int)
        g = np.array([float(mixed_partial(misfit, list(x), eye[i])) for i in range(3)])
        H = np.empty((3, 3))
        for i in range(3):
            for j in range(i, 3):
                H[i, j] = H[j, i] = float(mixed_partial(misfit, list(x), eye[i] + eye[j]))
        values, vectors = np.linalg.eigh(H)
        # one equation for three numbers: the smallest step that does it
        strong = np.maximum(np.abs(values), 1e-8 * np.abs(values).max()) + damping
        step = -vectors @ ((vectors.T @ g) / strong)
        step *= min(1.0, 0.3 * float(np.min(x / np.maximum(np.abs(step), 1e-300))))
        value = float(misfit(*(x + step)))
        if value < history[-1]:
            x, damping = x + step, damping * 0.1
            history.append(value)
        else:
            damping = max(damping, 1e-6) * 100.0
            if damping > 1e12:
                break
    found = arch.squared_frequency(x[0], x[1], x[2], wind)
    return Design(x, float(found), history)


def _minor(D, i: int, j: int) -> Any:
    """Cofactor: gradients are rows of the inverse transpose."""
    r, s = [(i + k) % 3 for k in (1, 2)]
    p, q = [(j + k) % 3 for k in (1, 2)]
    return D[r][p] * D[s][q] - D[r][q] * D[s][p]


def _real(z: Any) -> Any:
    return z.real if isinstance(z, Multicomplex) else z


def _each(function: Callable[..., Any], *parts: Any) -> Any:
    """A linear function of arrays on every coefficient of numbers of any order."""
    if order_of(parts[0]) == 0:
        return function(*(np.asarray(p, float) for p in parts))
    return Multicomplex(
        _each(function, *(p.re for p in parts)), _each(function, *(p.im for p in parts))
    )
