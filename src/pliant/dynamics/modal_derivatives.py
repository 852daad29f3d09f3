"""Modal derivatives of first and second order for any law (seed 004, section 4.8.3).

About the rest, with modes K phi_i = w_i^2 M phi_i and u = sum q_i phi_i + 1/2 sum q_i q_j psi_ij +
1/6 sum q_i q_j q_k chi_ijk, staying in balance with the forces that push along the modes gives

    K psi_ij = - K'[phi_i] phi_j
    K chi_ijk = - (K''[phi_i, phi_j] phi_k + K'[psi_ij] phi_k + K'[psi_jk] phi_i + K'[psi_ik] phi_j)

(Barbic and James 2005; Yang et al. 2015). K' and K'' are third and fourth derivatives of the
energy at every quadrature point, by multicomplex steps (eq. 4.27).

Isotropic energies: stretches are not smooth in F where they coincide, as they do at the rest, but
a symmetric function of them is. With W = U - I, U^2 = F^T F, p_k = tr W^k, psi to fourth order is

    psi = a p1 + b1 p1^2 + b2 p2 + c1 p1^3 + c2 p1 p2 + c3 p3
          + d1 p1^4 + d2 p1^2 p2 + d3 p2^2 + d4 p1 p3

(ten derivatives by the stretches give the coefficients), and its stress is

    P = F U^-1 (psi_1 I + 2 psi_2 W + 3 psi_3 W^2),   psi_k = d psi / d p_k,

in which U^-1 and W are series in F^T F - I that end: one evaluation gives all derivatives exactly.
Other energies are stepped themselves: nine evaluations of one more order.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from pliant.complexstep.derivatives import STEP
from pliant.complexstep.multicomplex import Multicomplex, accelerated, part, stepped
from pliant.complexstep.tensors import matmul, trace, transpose
from pliant.core.errors import BadInput
from pliant.core.vectors import in_space
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.modes import Modes, modes
from pliant.dynamics.scene import Scene
from pliant.fem.cutting.cell_quadrature import cell_quadrature
from pliant.fem.forces.hyperelastic import Hyperelasticity
from pliant.fem.laws.dilatation import mean_energy
from pliant.fem.laws.expression import evaluate, gradient, variable
from pliant.fem.laws.law import Energy, Law

SIDE = 1e-14
"""Distance from the rest at which both sides of a kink (volume guarding: |J - 1|^3) are looked at;
their mean is the even part of the energy, which central differences see, and a smooth energy's own
derivative to rounding."""

FOURTH_STEP = 1e-35
"""Step of fourth derivatives: its fourth power must stay a normal number beside the energy's."""


@dataclass(frozen=True)
class ModalDerivatives:
    """The modes, first: {(i, j): (nodes, 3)}, i <= j, and second: {(i, j, k): (nodes, 3)}."""

    modes: Modes
    first: dict[tuple[int, int], np.ndarray]
    second: dict[tuple[int, int, int], np.ndarray]

    def basis(self, mass: np.ndarray, count: int | None = None) -> np.ndarray:
        """Modes and derivatives, mass-orthonormal, (vectors, nodes, 3); at most `count`."""
        fields = [in_space(s) for s in self.modes.shapes]
        fields += [*self.first.values(), *self.second.values()]
        out: list[np.ndarray] = []
        for f in fields:
            f = f / np.sqrt(np.sum(mass[:, None] * f * f))
            for _ in range(2):
                for b in out:
                    f = f - b * np.sum(mass[:, None] * b * f)
            size = np.sqrt(np.sum(mass[:, None] * f * f))
            if size > 1e-6:
                out.append(f / size)
        return np.array(out[:count])


def modal_derivatives(scene: Scene, count: int = 5, *, order: int = 1) -> ModalDerivatives:
    """Derivatives of the `count` lowest modes of a held body; order 1 or 2."""
    if not scene.constitution.parameters():
        raise BadInput("Modal derivatives need a material law: give Scene(law=...).")
    if order not in (1, 2):
        raise BadInput(f"order must be 1 or 2, not {order}.")
    system = ImplicitModel(scene)
    third = ForceDerivatives(system)
    found = modes(scene, count)
    shapes = in_space(found.shapes)
    solve = _rest_solver(system)
    first: dict[tuple[int, int], np.ndarray] = {}
    for i, j in combinations_with_replacement(range(count), 2):
        first[i, j] = solve(-third(shapes[i], shapes[j]))
    second: dict[tuple[int, int, int], np.ndarray] = {}
    if order == 2:
        for i, j, k in combinations_with_replacement(range(count), 3):
            pairs = ((first[i, j], k), (first[j, k], i), (first[i, k], j))
            right = third(shapes[i], shapes[j], shapes[k])
            for psi, m in pairs:
                right = right + third(psi, shapes[m])
            second[i, j, k] = solve(-right)
    return ModalDerivatives(found, first, second)


class ForceDerivatives:
    """K'[a] b and K''[a, b] c at the rest: derivatives of the internal force along fields."""

    def __init__(self, system: ImplicitModel):
        self.body, self.law = system.scene.body, system.law
        self._rest = rest_coefficients(self.law) if self.law.energy.isotropic else None
        rule = cell_quadrature(self.body, dilatation=system.scene.dilatation)
        row = self.body.geometry_row
        self._weight, self._gradient = rule.weight[row], rule.gradient[row]
        self._slopes: np.ndarray | None = None  # of U, where the cell's mean dilatation acts
        operator = system.elastic.operator
        if isinstance(operator, Hyperelasticity) and operator.averaged:
            mean, n = mean_energy(self.law.energy), len(self.law.values)
            if mean is not None:
                table = mean.table(self.law.table(len(self.body.cells)))
                self._slopes = table[:, n : n + 3].T[..., None]

    def __call__(self, *fields: np.ndarray) -> np.ndarray:
        """D^(n+1) of the energy applied to n fields (nodes, 3): forces (nodes, 3)."""
        gradients = [
            np.einsum("cai,cqaj->cqij", f[self.body.cells], self._gradient) for f in fields
        ]
        if self._rest is None:
            P = energy_derivative(self.law, gradients)
        else:
            P = isotropic_derivative(self._rest, gradients)
        if not np.isfinite(P).all():
            raise _not_smooth(self.law, len(fields) + 1)
        if self._slopes is not None:
            P = P + mean_derivative(self._slopes, self._weight, gradients)
        force = np.einsum("cq,cqij,cqaj->cai", self._weight, P, self._gradient)
        out = np.zeros((len(self.body.nodes), 3))
        np.add.at(out, self.body.cells, force)
        return out


def _not_smooth(law: Law, order: int) -> BadInput:
    return BadInput(
        f"The law '{law.name}' has no finite derivative of order {order} at the rest, so it has no "
        "modal derivatives: write its energy without roots, logarithms or quotients that vanish "
        "at F = I."
    )


RestCoefficients = namedtuple("RestCoefficients", "a b1 b2 c1 c2 c3 d1 d2 d3 d4")
"""psi's Taylor polynomial in p1, p2, p3 at the rest; fields are numbers, or (cells, 1)."""


def _principal_slopes(energy: Energy) -> list[Any]:
    """psi's derivatives by stretches 0, 00, 01, 000, 001, 012, 0000, 0001, 0011, 0012.

    All others at the rest are these by symmetry.
    """
    s = [variable(f"s{i}") for i in range(3)]
    one = gradient(energy.principal, s)[0]
    two = gradient(one, s)
    three, mixed = gradient(two[0], s), gradient(two[1], s)
    four, mixed_four = gradient(three[0], s), gradient(three[1], s)
    return [one, *two[:2], *three[:2], mixed[2], *four[:2], *mixed_four[1:]]


def rest_coefficients(law: Law) -> RestCoefficients:
    """Taylor coefficients a ... d4 of an isotropic law at the rest."""
    slopes = _principal_slopes(law.energy)
    inputs = {f"p_{n}": np.asarray(v, float) for n, v in law.values.items()}

    def at(s: float) -> np.ndarray:
        found = evaluate(slopes, inputs | {f"s{i}": np.float64(s) for i in range(3)})
        return np.array(np.broadcast_arrays(*found))

    with np.errstate(all="ignore"):
        near, far = (np.array([at(1.0 - d), at(1.0 + d)]) for d in (SIDE, 4.0 * SIDE))
        # a derivative that grows towards the rest has no value there
        steady = np.abs(far - near) <= 1e-3 * np.abs(near[:, :6]).max(axis=1, keepdims=True)
    if not steady[:, :6].all():
        raise _not_smooth(law, 3)
    total = np.where(steady.all(axis=0), near.mean(axis=0), np.nan)
    g, gii, gij, giii, giij, gijk, giiii, giiij, giijj, giijk = (
        x if np.ndim(x) == 0 else x[:, None] for x in total
    )
    # coefficients of s^2, s t; s^3, s^2 t, s t u; s^4, s^3 t, s^2 t^2, s^2 t u are matched
    b1, c1 = gij / 2.0, gijk / 6.0
    c2 = giij / 2.0 - 3.0 * c1
    d1 = (giiii / 24.0 + giijk / 2.0 - giiij / 6.0 - giijj / 8.0) / 6.0
    d2 = giijk / 4.0 - 6.0 * d1
    d3 = giijj / 8.0 - 3.0 * d1 - d2
    d4 = giiij / 6.0 - 4.0 * d1 - 2.0 * d2
    return RestCoefficients(g, b1, gii / 2.0 - b1, c1, c2, giii / 6.0 - c1 - c2, d1, d2, d3, d4)


def isotropic_derivative(rest: RestCoefficients, directions: list[np.ndarray]) -> np.ndarray:
    """What `energy_derivative` gives, from the Taylor polynomial of an isotropic energy."""
    D, derivative = _stepped_along(directions)
    E = D + transpose(D) + matmul(transpose(D), D)  # F^T F - I; its powers beyond `order` vanish
    E2 = matmul(E, E)
    E3 = matmul(E2, E)
    W = E * 0.5 - E2 * 0.125 + E3 * 0.0625
    inverse = np.eye(3) - E * 0.5 + E2 * 0.375 - E3 * 0.3125
    W2 = matmul(W, W)
    p1, p2, p3 = trace(W), trace(W2), trace(matmul(W2, W))
    r = rest
    one = r.a + 2.0 * r.b1 * p1 + 3.0 * r.c1 * p1 * p1 + r.c2 * p2
    two = r.b2 + r.c2 * p1
    three = r.c3 + 0.0 * p1
    if len(directions) > 2:  # an energy may lack the fourth derivative only
        one = one + 4.0 * r.d1 * p1 * p1 * p1 + 2.0 * r.d2 * p1 * p2 + r.d4 * p3
        two = two + r.d2 * p1 * p1 + 2.0 * r.d3 * p2
        three = three + r.d4 * p1
    every = (..., None, None)
    S = one[every] * np.eye(3) + 2.0 * two[every] * W + 3.0 * three[every] * W2
    return derivative(matmul(matmul(np.eye(3) + D, inverse), S))


def _stepped_along(directions: list[np.ndarray]) -> tuple[Any, Callable[[Any], np.ndarray]]:
    """The sum of all directions, each times a unit of its own, and what reads off a function of it
    the derivative along all of them.
    """
    order, zero = len(directions), np.zeros(directions[0].shape)
    scale = [float(np.abs(d).max()) or 1.0 for d in directions]
    D: Any = 0.0
    for n, (d, s) in enumerate(zip(directions, scale, strict=True), start=1):
        D = stepped(zero, (n,), order, STEP) * (d / s) + D
    size = np.prod(scale) / STEP**order
    return D, lambda P: part(P, tuple(range(1, order + 1))) * size


def mean_derivative(slopes: np.ndarray, weight: np.ndarray, directions: list[np.ndarray]):
    """The part of the mean dilatation, (U'(Jbar) - U'(J)) cof F (fem.laws.dilatation).

    slopes: (3, cells, 1) of U at the rest, where U' = a2 x + a3 x^2 / 2 + a4 x^3 / 6, x = J - 1.
    """
    D, derivative = _stepped_along(directions)
    every = (..., None, None)
    square, first = matmul(D, D), trace(D)
    second = (first * first - trace(square)) * 0.5
    minors = square - first[every] * D + second[every] * np.eye(3)  # transposed: of D alone
    x = first + second + trace(matmul(minors, D)) * (1.0 / 3.0)
    share = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)

    def slope(x):
        return x * (slopes[0] + x * (slopes[1] * 0.5 + x * (slopes[2] / 6.0)))

    cofactor = np.eye(3) + first[every] * np.eye(3) + transpose(minors - D)
    return derivative((slope(_mean_of_points(x, share)) - slope(x))[every] * cofactor)


def _mean_of_points(x: Any, share: np.ndarray) -> Any:
    """Weighted mean over the points of each cell, at all of them."""
    if isinstance(x, Multicomplex):
        return Multicomplex(_mean_of_points(x.re, share), _mean_of_points(x.im, share))
    return np.broadcast_to((share * x).sum(axis=1, keepdims=True), x.shape)


def energy_derivative(law: Law, directions: list[np.ndarray]) -> np.ndarray:
    """Derivative of the stress at the rest along all directions (cells, q, 3, 3), the same shape.

    One unit per direction and one more that is moved through the nine entries of F.
    """
    order = len(directions) + 1
    step = STEP if order <= 3 else FOURTH_STEP
    scale = [float(np.abs(d).max()) or 1.0 for d in directions]
    shape = directions[0].shape[:2]
    parameters = SimpleNamespace(
        **{n: v if np.ndim(v) == 0 else np.asarray(v)[:, None] for n, v in law.values.items()}
    )
    out = np.empty((*shape, 3, 3))
    every = tuple(range(1, order + 1))
    base = np.empty((3, 3), object)
    for i in range(3):
        for j in range(3):
            z = stepped(np.full(shape, float(i == j)), (), order, step)
            for n, (d, s) in enumerate(zip(directions, scale, strict=True), start=1):
                z = z + stepped(np.zeros(shape), (n,), order, step) * (d[..., i, j] / s)
            base[i, j] = z
    last = stepped(np.zeros(shape), (order,), order, step)
    with accelerated(), np.errstate(all="ignore"):  # whoever asks looks at what came out
        for i in range(3):
            for j in range(3):
                F = base.copy()
                F[i, j] = F[i, j] + last
                value = law.energy.value(F, parameters)
                out[..., i, j] = part(value, every) / step**order
    return out * np.prod(scale)


def _rest_solver(system: ImplicitModel):
    """K^-1 at the rest on the free components."""
    system.assemble_rest()
    free = np.flatnonzero(system.boundary.free.reshape(-1))
    K = system.matrix.to_scipy().tocsr()[free][:, free].tocsc()
    factor = splu(K, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def solve(right: np.ndarray) -> np.ndarray:
        out = np.zeros(right.size)
        out[free] = factor.solve(right.reshape(-1)[free])
        return out.reshape(right.shape)

    return solve
