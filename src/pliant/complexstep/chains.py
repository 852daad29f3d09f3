"""Accelerated rules for products of many factors and functions of functions (seed 004, 4.5)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.complexstep.multicomplex import Multicomplex


def product_chain(factors: list[Any]) -> Any:
    """Product of numbers of order 1 with all terms of second order dropped (eqs. 4.12, 4.13).

    A = product of the real parts; every factor adds A / a_k times its imaginary part. Factors with
    a zero real part are left out of the division.
    """
    a = [np.asarray(f.re) for f in factors]
    if any((x == 0.0).any() for x in a):
        out = factors[0]
        for f in factors[1:]:
            out = out * f
        return out
    whole = np.prod(np.array(np.broadcast_arrays(*a)), axis=0)
    return Multicomplex(whole, sum(whole / x * f.im for x, f in zip(a, factors, strict=True)))


def nested(functions: list[Callable[[Any], Any]], x: Any, step: float = 1e-40) -> Any:
    """Derivative of f_N(... f_2(f_1(x))) as a product of ratios b_k / b_(k-1) (eq. 4.16)."""
    a, slope = np.asarray(x, float), 1.0
    for f in functions:
        z = f(Multicomplex(a, np.full_like(a, step)))
        slope = slope * (z.im / step)
        a = z.re
    return slope
