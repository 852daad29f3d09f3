"""A material law at single deformation gradients: energy, stress, tangent, and changes.

The laws' own functions (fem.laws.compiled) in kernels over points that belong to no cell's
quadrature. Arrays are NumPy's; on the CPU the kernels read and write their memory.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, device, to_device, zeros
from pliant.fem.forces.law_points import general_parts, isotropic_parts
from pliant.fem.forces.polar import rotation
from pliant.fem.laws.compiled import law_functions
from pliant.fem.laws.corotated import Corotated
from pliant.fem.laws.law import Energy, Law

GRAIN = 500
"""Points per thread from which a launch is worth splitting (half a microsecond each)."""


@wp.func
def corotated_energy(F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32) -> wp.float64:
    """mu |F - R|^2 + lambda/2 tr(R^T F - I)^2: by a polar decomposition, a third of an SVD."""
    R = rotation(F)
    D = F - R
    trace = wp.ddot(R, D)
    return p[c, 1] * wp.ddot(D, D) + wp.float64(0.5) * p[c, 0] * trace * trace


@wp.func
def corotated_stress(F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32) -> wp.mat33d:
    """2 mu (F - R) + lambda tr(R^T F - I) R."""
    R = rotation(F)
    D = F - R
    return wp.float64(2.0) * p[c, 1] * D + (p[c, 0] * wp.ddot(R, D)) * R


@dataclass(frozen=True)
class PointKernels:
    """Kernels over points with a row of parameters each."""

    stress: Any
    rows: Any
    tangent: Any
    change: Any
    pull: Any


@lru_cache(maxsize=256)
def point_kernels(energy: Energy, floor: float = 0.0) -> PointKernels:
    """The kernels of an energy, made once."""
    functions = law_functions(energy, floor)
    name = f"{functions.module}_points"  # not that of the cells' kernels, which may be loaded
    parts = isotropic_parts if functions.isotropic else general_parts
    energy_at, stress_at, matrix_at, change_at, pull_at = parts(functions, name)
    if energy is Corotated and floor == 0.0:
        energy_at, stress_at = corotated_energy, corotated_stress

    @wp.kernel(module=name)
    def stress(
        first: wp.int32,
        F: wp.array(dtype=wp.mat33d),
        p: wp.array2d(dtype=wp.float64),
        psi: wp.array(dtype=wp.float64),
        P: wp.array(dtype=wp.mat33d),
    ):
        i = first + wp.tid()
        psi[i] = energy_at(F[i], p, i)
        P[i] = stress_at(F[i], p, i)

    @wp.kernel(module=name)
    def rows(
        first: wp.int32,
        dim: wp.int32,
        with_energy: wp.int32,
        H: wp.array2d(dtype=wp.float64),
        w: wp.array(dtype=wp.float64),
        p: wp.array2d(dtype=wp.float64),
        psi: wp.array(dtype=wp.float64),
        S: wp.array2d(dtype=wp.float64),
    ):
        """S[i, j dim + a] = w P_aj at F_aj = d_aj + H[i, j dim + a]: as spans have them."""
        i = first + wp.tid()
        F = wp.identity(n=3, dtype=wp.float64)
        for j in range(dim):
            for a in range(dim):
                F[a, j] = F[a, j] + H[i, j * dim + a]
        if with_energy == 1:
            psi[i] = energy_at(F, p, i)
        P = stress_at(F, p, i)
        for j in range(dim):
            for a in range(dim):
                S[i, j * dim + a] = w[i] * P[a, j]

    @wp.kernel(module=name)
    def tangent(
        first: wp.int32,
        F: wp.array(dtype=wp.mat33d),
        p: wp.array2d(dtype=wp.float64),
        project: wp.int32,
        A: wp.array2d(dtype=wp.float64),
    ):
        """A[i, 9 (3 a + b) + 3 c + d] = d P_ab / d F_cd."""
        i = first + wp.tid()
        M = matrix_at(F[i], p, i, wp.float64(1.0), project)
        for m in range(9):
            for k in range(3):
                for l in range(3):
                    A[i, 9 * m + 3 * k + l] = M[m, 4 * l + k]

    @wp.kernel(module=name)
    def change(
        first: wp.int32,
        F: wp.array(dtype=wp.mat33d),
        p: wp.array2d(dtype=wp.float64),
        d_p: wp.array2d(dtype=wp.float64),
        dP: wp.array(dtype=wp.mat33d),
    ):
        """The stress' change by the parameters alone."""
        i = first + wp.tid()
        dP[i] = change_at(F[i], p, i, wp.mat33d(), d_p, 1)

    @wp.kernel(module=name)
    def pull(
        first: wp.int32,
        F: wp.array(dtype=wp.mat33d),
        p: wp.array2d(dtype=wp.float64),
        Y: wp.array(dtype=wp.mat33d),
        out: wp.array2d(dtype=wp.float64),
    ):
        """out[i, j] += Y : d P / d p_j."""
        i = first + wp.tid()
        pull_at(F[i], p, i, Y[i], wp.float64(1.0), out)

    return PointKernels(stress, rows, tangent, change, pull)


class PointLaw:
    """A law at `count` points."""

    def __init__(self, law: Law, table: np.ndarray, weights: np.ndarray, dim: int):
        """table: (points, parameters); weights: (points,) of `forces`."""
        self.law, self.count, self.dim = law, len(table), dim
        n = self.count
        self._kernels = point_kernels(law.energy, law.floor)
        self._F, self._P = zeros(n, wp.mat33d), zeros(n, wp.mat33d)
        self._psi, self._A = zeros(n, wp.float64), zeros((n, 81), wp.float64)
        self._p = to_device(np.ascontiguousarray(table, float), wp.float64)
        self._stress = Recorded(
            self._kernels.stress, n, [self._F, self._p, self._psi, self._P], grain=GRAIN
        )
        self._tangent = Recorded(
            self._kernels.tangent, n, [self._F, self._p, 0, self._A], grain=GRAIN
        )

        self._H, self._S = (zeros((n, dim * dim), wp.float64) for _ in range(2))
        self._w = to_device(np.ascontiguousarray(weights, float), wp.float64)
        self._rows = Recorded(
            self._kernels.rows, n, [dim, 0, self._H, self._w, self._p, self._psi, self._S],
            grain=GRAIN,
        )  # fmt: skip
        self._shared = device() == "cpu"
        self._seen = [x.numpy() if self._shared else np.zeros(x.shape)
                      for x in (self._H, self._S, self._psi)]  # fmt: skip

    @property
    def gradients(self) -> np.ndarray:
        """Where `forces` takes gradients from, (points dim, dim): to be written to."""
        return self._seen[0].reshape(-1, self.dim)

    def forces(self, *, energy: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Energies (points,), if asked for, and weighted stresses (points dim, dim); both views."""
        self._rows.set(1, int(energy))
        if not self._shared:
            self._H.assign(self._seen[0])
        self._rows.run()
        if not self._shared:
            self._seen[1:] = self._S.numpy(), self._psi.numpy()
        return self._seen[2], self._seen[1].reshape(-1, self.dim)

    def stress(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies (points,) and P (points, 3, 3) at F; views that the next call overwrites."""
        self._F.assign(F)
        self._stress.run()
        return self._psi.numpy(), self._P.numpy()

    def tangent(self, F: np.ndarray, *, project: bool) -> np.ndarray:
        """dP/dF (points, 3, 3, 3, 3); project: with its eigenvalues clamped. A view, too."""
        self._F.assign(F)
        self._tangent.set(2, int(project))
        self._tangent.run()
        return self._A.numpy().reshape(-1, 3, 3, 3, 3)

    def change(self, F: np.ndarray, d_p: np.ndarray) -> np.ndarray:
        """Change of P by the parameters' (points, parameters)."""
        self._F.assign(F)
        change = to_device(np.ascontiguousarray(d_p, float), wp.float64)
        out = zeros(self.count, wp.mat33d)
        Recorded(
            self._kernels.change, self.count, [self._F, self._p, change, out], grain=GRAIN
        ).run()
        return out.numpy()

    def pull(self, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Y : dP/dp, (points, parameters)."""
        self._F.assign(F)
        given = to_device(np.ascontiguousarray(Y, float), wp.mat33d)
        out = zeros(self._p.shape, wp.float64)
        Recorded(self._kernels.pull, self.count, [self._F, self._p, given, out], grain=GRAIN).run()
        return out.numpy()
