"""Derivatives of any order and mixture by one evaluation (seed 004, eqs. 4.26 and 4.27).

A function may use +, -, *, /, ** and NumPy's elementary functions; it must not take `.real`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pliant.complexstep.multicomplex import accelerated, part, stepped

STEP = 1e-40
"""Default step: its cube is a normal number, and its square is below all rounding."""


def derivative(
    function: Callable[[Any], Any],
    x: Any,
    *,
    order: int = 1,
    step: float = STEP,
    fast: bool = False,
) -> Any:
    """order-th derivative of a function of one number (or elementwise of an array)."""
    units = tuple(range(1, order + 1))
    with accelerated(fast):
        value = function(stepped(x, units, order, step))
    return part(value, units) / step**order


def mixed_partial(
    function: Callable[..., Any],
    at: Sequence[Any],
    orders: Sequence[int],
    *,
    step: float = STEP,
    fast: bool = False,
) -> Any:
    """d^n f / (dx_1^k_1 ... dx_p^k_p), n = k_1 + ... + k_p: the units are dealt out (eq. 4.27)."""
    total = int(sum(orders))
    arguments, first = [], 1
    for x, k in zip(at, orders, strict=True):
        arguments.append(stepped(x, tuple(range(first, first + k)), total, step))
        first += k
    with accelerated(fast):
        value = function(*arguments)
    return part(value, tuple(range(1, total + 1))) / step**total


def gradient(
    function: Callable[..., Any], at: Sequence[Any], *, step: float = STEP, fast: bool = False
) -> np.ndarray:
    """First derivatives by every argument, (p, ...)."""
    p = len(at)
    return np.array(
        [mixed_partial(function, at, [int(i == j) for j in range(p)], step=step, fast=fast)
         for i in range(p)]
    )  # fmt: skip


def hessian(
    function: Callable[..., Any], at: Sequence[Any], *, step: float = STEP, fast: bool = False
) -> np.ndarray:
    """Second derivatives by every pair of arguments, (p, p, ...)."""
    p = len(at)
    rows: list[list[Any]] = [[None] * p for _ in range(p)]
    for i in range(p):
        for j in range(i, p):
            orders = [int(k == i) + int(k == j) for k in range(p)]
            rows[i][j] = rows[j][i] = mixed_partial(function, at, orders, step=step, fast=fast)
    return np.array(rows)
