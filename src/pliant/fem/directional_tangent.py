"""K p without K: the derivative of the force along a displacement field (seed 004, eq. 4.37).

The seed prints K p = Im E(u + h p i) / h, which is a number, the slope of the energy; meant is the
derivative of its gradient, K p = Im f(u + h p i) / h. With the accelerated rules (section 4.5) the
imaginary part of the stress along dF is the gradient by F of

    s(F, dF) = sum_ij d psi / d F_ij  dF_ij,

one more pass over the recorded energy: some three times the work of a stress, no 9 x 9 tangent and
no decomposition of F. Energies of the stretches, and continued ones, have no such record: for them
the change of the stress comes from fem.law_points.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

from functools import lru_cache
from typing import Any

import warp as wp

from pliant.fem.law_kernels import change_kernel
from pliant.fem.laws.compiled import compiled_function
from pliant.fem.laws.dilatation import MeanEnergy
from pliant.fem.laws.expression import constant, gradient, variable
from pliant.fem.laws.law import Energy
from pliant.fem.mean_dilatation import mean_parts

ENTRIES = [f"{i}{j}" for i in range(3) for j in range(3)]


@lru_cache(maxsize=64)
def directional_kernel(energy: Energy | MeanEnergy) -> Any | None:
    """A kernel like `LawKernels.change`, for u alone; None where the energy has no record."""
    if energy.full is None:
        return None
    F = [variable(f"F{e}") for e in ENTRIES]
    slope = constant(0.0)
    for g, e in zip(gradient(energy.full, F), ENTRIES, strict=True):
        slope = slope + g * variable(f"D{e}")
    inputs = [f"{m}{e} = {m}[{e[0]}, {e[1]}]" for m in "FD" for e in ENTRIES]
    along, name = compiled_function(
        energy, "along", gradient(slope, F), inputs, "F: wp.mat33d, D: wp.mat33d", "wp.mat33d"
    )

    @wp.func(module=name)
    def change_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        dF: wp.mat33d,
        d_p: wp.array2d(dtype=wp.float64),
        with_p: wp.int32,
    ) -> wp.mat33d:
        return along(F, dF, p, c)

    mean = mean_parts(isinstance(energy, MeanEnergy), len(energy.parameters), name)
    return change_kernel(change_at, mean, name)
