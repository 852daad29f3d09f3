"""Modal derivatives of first and second order for any law (seed 004, section 4.8.3).

About the rest, with modes K phi_i = w_i^2 M phi_i and u = sum q_i phi_i + 1/2 sum q_i q_j psi_ij +
1/6 sum q_i q_j q_k chi_ijk, staying in balance with the forces that push along the modes gives

    K psi_ij = - K'[phi_i] phi_j
    K chi_ijk = - (K''[phi_i, phi_j] phi_k + K'[psi_ij] phi_k + K'[psi_jk] phi_i + K'[psi_ik] phi_j)

(Barbic and James 2005; Yang et al. 2015). K' and K'' are third and fourth derivatives of the
energy, taken at every quadrature point by multicomplex steps of the energy itself (eq. 4.27): nine
evaluations of one more order, whatever the law.
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
from scipy.sparse.linalg import splu

from pliant.complexstep.derivatives import STEP
from pliant.complexstep.multicomplex import accelerated, part, stepped
from pliant.core.errors import BadInput
from pliant.dynamics.law_system import LawSystem
from pliant.dynamics.modes import Modes, modes
from pliant.dynamics.scene import Scene
from pliant.fem.cell_quadrature import cell_quadrature
from pliant.fem.laws.law import Law

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
        fields = [_three(s) for s in self.modes.shapes]
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
    if scene.law is None:
        raise BadInput("Modal derivatives need a material law: give Scene(law=...).")
    if order not in (1, 2):
        raise BadInput(f"order must be 1 or 2, not {order}.")
    system = LawSystem(scene)
    found = modes(scene, count)
    shapes = [_three(s) for s in found.shapes]
    third = ForceDerivatives(system)
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

    def __init__(self, system: LawSystem):
        self.body, self.law = system.scene.body, system.law
        rule = cell_quadrature(self.body)
        row = self.body.geometry_row
        self._weight, self._gradient = rule.weight[row], rule.gradient[row]

    def __call__(self, *fields: np.ndarray) -> np.ndarray:
        """D^(n+1) of the energy applied to n fields (nodes, 3): forces (nodes, 3)."""
        gradients = [
            np.einsum("cai,cqaj->cqij", f[self.body.cells], self._gradient) for f in fields
        ]
        P = energy_derivative(self.law, gradients)
        force = np.einsum("cq,cqij,cqaj->cai", self._weight, P, self._gradient)
        out = np.zeros((len(self.body.nodes), 3))
        np.add.at(out, self.body.cells, force)
        return out


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
    with accelerated():
        for i in range(3):
            for j in range(3):
                F = base.copy()
                F[i, j] = F[i, j] + last
                value = law.energy.value(F, parameters)
                out[..., i, j] = part(value, every) / step**order
    return out * np.prod(scale)


def _rest_solver(system: LawSystem):
    """K^-1 at the rest on the free components."""
    system.elasticity.assemble(
        system.matrix, system.mass, mass_factor=0.0, stiffness_factor=1.0
    )
    if system.walls is not None:
        system.walls.assemble(system.matrix, 1.0)
    free = np.flatnonzero(system.boundary.free.reshape(-1))
    K = system.matrix.to_scipy().tocsr()[free][:, free].tocsc()
    factor = splu(K, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def solve(right: np.ndarray) -> np.ndarray:
        out = np.zeros(right.size)
        out[free] = factor.solve(right.reshape(-1)[free])
        return out.reshape(right.shape)

    return solve


def _three(field: np.ndarray) -> np.ndarray:
    out = np.zeros((len(field), 3))
    out[:, : field.shape[1]] = field
    return out
