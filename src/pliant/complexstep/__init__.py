"""Derivatives by complex and multicomplex steps (seed 004, chapter 4).

    f'(x) = Im f(x + h i) / h                                           (eq. 4.7)
    f^(n)(x) = Im_{1..n} f(x + h i_1 + ... + h i_n) / h^n                (eq. 4.26)

No difference is taken, so h may be 1e-40 and the result is as exact as f itself.
"""

from pliant.complexstep.chains import nested, product_chain
from pliant.complexstep.derivatives import derivative, gradient, hessian, mixed_partial
from pliant.complexstep.multicomplex import Multicomplex, accelerated, part, stepped

__all__ = [
    "Multicomplex", "accelerated", "derivative", "gradient", "hessian", "mixed_partial", "nested",
    "part", "product_chain", "stepped",
]  # fmt: skip
