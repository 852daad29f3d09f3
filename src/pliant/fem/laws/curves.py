"""Textbook specimens of an isotropic law: nominal stress over stretch or shear.

The free directions adjust until their stress vanishes (a root in one unknown). Stresses are the
law's closed forms where it has them, complex steps of the energy otherwise.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pliant.complexstep.derivatives import gradient
from pliant.core.errors import BadInput
from pliant.fem.laws.law import Law


def principal_stresses(law: Law, a: Any, b: Any, c: Any, *, derived: bool = False) -> np.ndarray:
    """Nominal principal stresses d psi / d stretch, (3, ...)."""
    p = SimpleNamespace(**{n: float(np.mean(v)) for n, v in law.values.items()})
    if law.energy.stresses is not None and not derived:
        return np.array(np.broadcast_arrays(*law.energy.stresses(a, b, c, p)))

    def psi(x, y, z):
        F = np.zeros((3, 3), object)
        F[0, 0], F[1, 1], F[2, 2] = x, y, z
        return law.energy.value(F, p)

    a, b, c = np.broadcast_arrays(*(np.asarray(x, float) for x in (a, b, c)))
    return gradient(psi, [a, b, c])


def _within(condition, end: float, guess: float) -> float:
    """`end`, or a place on the way to the guess where the law is defined."""
    for _ in range(40):
        if np.isfinite(condition(end)):
            break
        end = guess + 0.8 * (end - guess)
    return end


def _free(condition, *guesses: float) -> float:
    """Root of a free direction's stress, bracketed around a guess that the law is defined at."""
    from scipy.optimize import brentq  # slow to load, and curves are rarely asked for

    with np.errstate(all="ignore"):  # a law may end at a wall
        for guess in (g for g in guesses if np.isfinite(condition(g))):
            for reach in (1.05, 1.2, 1.5, 2.0, 3.0, 5.0):
                ends = (guess / reach, guess * reach)
                low, high = (_within(condition, end, guess) for end in ends)
                if condition(low) * condition(high) <= 0.0:
                    root: Any = brentq(condition, low, high, xtol=1e-15, rtol=np.float64(1e-14))
                    return float(root)
    raise BadInput("The free sides find no stretch without stress: the law is unstable there.")


def uniaxial(law: Law, stretch: Any) -> tuple[np.ndarray, np.ndarray]:
    """A bar pulled along one axis, sides free: nominal stress [Pa] and lateral stretch."""
    stretch = np.atleast_1d(np.asarray(stretch, float))
    stress, lateral = np.empty_like(stretch), np.empty_like(stretch)
    for k, l in enumerate(stretch):
        guess = l ** -max(min(float(np.mean(law.poisson_ratio)), 0.5), 0.0)
        lateral[k] = _free(
            lambda t, l=l: float(principal_stresses(law, l, t, t)[1]), guess, l**-0.5
        )
        stress[k] = principal_stresses(law, l, lateral[k], lateral[k])[0]
    return stress, lateral


def biaxial(law: Law, stretch: Any) -> tuple[np.ndarray, np.ndarray]:
    """A sheet pulled equally along two axes: nominal stress [Pa] and the stretch across."""
    stretch = np.atleast_1d(np.asarray(stretch, float))
    stress, across = np.empty_like(stretch), np.empty_like(stretch)
    for k, l in enumerate(stretch):
        nu = max(min(float(np.mean(law.poisson_ratio)), 0.5), 0.0)
        guess = l ** -(2.0 * nu / (1.0 - nu))
        across[k] = _free(lambda t, l=l: float(principal_stresses(law, l, l, t)[2]), guess, l**-2.0)
        stress[k] = principal_stresses(law, l, l, across[k])[0]
    return stress, across


def shear(law: Law, amount: Any) -> np.ndarray:
    """Simple shear F = I + amount e1 (x) e2: the shear stress P12 [Pa].

    The stretches are sqrt(1 + g^2/4) +- g/2 and 1, so P12 = d psi / d g by the chain rule.
    """
    g = np.asarray(amount, float)
    root = np.sqrt(1.0 + g * g / 4.0)
    long, short = root + g / 2.0, root - g / 2.0
    P = principal_stresses(law, long, short, np.ones_like(g))
    return P[0] * (g / (4.0 * root) + 0.5) + P[1] * (g / (4.0 * root) - 0.5)
