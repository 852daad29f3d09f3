"""Multicomplex numbers of any order whose coefficients are NumPy arrays (seed 004, eq. 4.22).

A number of order n is a + b i_n with a and b of order n - 1 and i_n^2 = -1; order 0 is a real
array. Units commute, so there are zero divisors, but every operation below is the analytic
continuation of the real one. Two sets of rules give the elementary functions:

exact        e^(a + b i) = e^a (cos b + i sin b), and so on (appendix B);
accelerated  f(a + b i) = f(a) + f'(a) b i, b taken as infinitesimal (section 4.5): sin b ~ b,
             e^b ~ 1 + b, powers of b beyond the first dropped. Below b = 1e-8 both agree to the
             last bits. `chains` has sections 4.5.2 and 4.5.3.

`with accelerated():` switches the rules.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pliant.core.errors import BadInput

_fast: ContextVar[bool] = ContextVar("accelerated", default=False)


@contextmanager
def accelerated(on: bool = True) -> Iterator[None]:
    """Use the infinitesimal rules of seed 004, section 4.5, inside the block."""
    token = _fast.set(on)
    try:
        yield
    finally:
        _fast.reset(token)


class Multicomplex:
    """a + b i_n; a, b: real arrays (order 1) or Multicomplex numbers of order n - 1."""

    __slots__ = ("im", "re")
    __array_priority__ = 1000.0

    def __init__(self, re: Any, im: Any):
        self.re = re
        self.im = im

    @property
    def order(self) -> int:
        """Number of imaginary units."""
        return 1 + order_of(self.re)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every coefficient."""
        inner = self.re
        while isinstance(inner, Multicomplex):
            inner = inner.re
        return np.shape(inner)

    @property
    def real(self) -> Any:
        """The coefficient without any unit."""
        return self.re.real if isinstance(self.re, Multicomplex) else self.re

    def __repr__(self) -> str:
        return f"({self.re!r} + {self.im!r} i{self.order})"

    def __getitem__(self, key: Any) -> "Multicomplex":
        return Multicomplex(self.re[key], self.im[key])

    def __neg__(self) -> "Multicomplex":
        return Multicomplex(-self.re, -self.im)

    def __pos__(self) -> "Multicomplex":
        return self

    def __add__(self, other: Any) -> "Multicomplex":
        z, w = _level(self, other)
        if not isinstance(w, Multicomplex):
            return Multicomplex(z.re + w, z.im)
        return Multicomplex(z.re + w.re, z.im + w.im)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Multicomplex":
        return self + (-other)

    def __rsub__(self, other: Any) -> "Multicomplex":
        return (-self) + other

    def __mul__(self, other: Any) -> "Multicomplex":
        z, w = _level(self, other)
        if not isinstance(w, Multicomplex):
            return Multicomplex(z.re * w, z.im * w)
        # the real part keeps its small term even when accelerated: where z.re = 0 it is all there
        # is, and log^2(1 - sqrt((x - 1)^2)) at x = 1 needs it
        return Multicomplex(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Multicomplex":
        if not isinstance(other, Multicomplex):
            return Multicomplex(self.re / other, self.im / other)
        return self * reciprocal(other)

    def __rtruediv__(self, other: Any) -> "Multicomplex":
        return other * reciprocal(self)

    def __pow__(self, exponent: Any) -> Any:
        return power(self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return exp(self * np.log(base))

    def __abs__(self) -> Any:
        sign = np.where(self.real < 0.0, -1.0, 1.0)
        return self * sign

    # comparisons are those of the real coefficient: a branch is chosen by the point itself
    def __lt__(self, other: Any) -> Any:
        return self.real < _real(other)

    def __le__(self, other: Any) -> Any:
        return self.real <= _real(other)

    def __gt__(self, other: Any) -> Any:
        return self.real > _real(other)

    def __ge__(self, other: Any) -> Any:
        return self.real >= _real(other)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        """np.exp(z), array * z and the like."""
        if method != "__call__" or kwargs:
            return NotImplemented
        if ufunc in _UFUNCS:
            return _UFUNCS[ufunc](*inputs)
        return NotImplemented


def order_of(z: Any) -> int:
    """Order of a number: 0 for real arrays."""
    return z.order if isinstance(z, Multicomplex) else 0


def _real(z: Any) -> Any:
    return z.real if isinstance(z, Multicomplex) else z


def _level(z: Multicomplex, w: Any) -> tuple[Multicomplex, Any]:
    """The pair with equal orders, or the second one of lower order as a coefficient."""
    n, m = z.order, order_of(w)
    if n == m or m == 0:
        return z, w
    if n > m:
        return z, w  # a number of lower order acts on both halves
    raise BadInput(
        f"Multicomplex numbers of order {n} and {m} met: make both with the same order "
        "(stepped(..., order=))."
    )


def reciprocal(z: Multicomplex) -> Multicomplex:
    """1 / (a + b i) = (a - b i) / (a^2 + b^2)."""
    a, b = z.re, z.im
    q = 1.0 / (a * a + b * b)
    return Multicomplex(a * q, -(b * q))


def exp(z: Any) -> Any:
    """e^z."""
    if not isinstance(z, Multicomplex):
        return np.exp(z)
    e = exp(z.re)
    if _fast.get():
        return Multicomplex(e, e * z.im)
    return Multicomplex(e * cos(z.im), e * sin(z.im))


def sin(z: Any) -> Any:
    """With z = a + b i: sin a cosh b + i cos a sinh b."""
    if not isinstance(z, Multicomplex):
        return np.sin(z)
    if _fast.get():
        return Multicomplex(sin(z.re), cos(z.re) * z.im)
    return Multicomplex(sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im))


def cos(z: Any) -> Any:
    """With z = a + b i: cos a cosh b - i sin a sinh b."""
    if not isinstance(z, Multicomplex):
        return np.cos(z)
    if _fast.get():
        return Multicomplex(cos(z.re), -(sin(z.re) * z.im))
    return Multicomplex(cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im)))


def sinh(z: Any) -> Any:
    """With z = a + b i: sinh a cos b + i cosh a sin b."""
    if not isinstance(z, Multicomplex):
        return np.sinh(z)
    if _fast.get():
        return Multicomplex(sinh(z.re), cosh(z.re) * z.im)
    return Multicomplex(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im))


def cosh(z: Any) -> Any:
    """With z = a + b i: cosh a cos b + i sinh a sin b."""
    if not isinstance(z, Multicomplex):
        return np.cosh(z)
    if _fast.get():
        return Multicomplex(cosh(z.re), sinh(z.re) * z.im)
    return Multicomplex(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im))


def tanh(z: Any) -> Any:
    """sinh / cosh."""
    return sinh(z) / cosh(z) if isinstance(z, Multicomplex) else np.tanh(z)


def tan(z: Any) -> Any:
    """sin / cos."""
    return sin(z) / cos(z) if isinstance(z, Multicomplex) else np.tan(z)


HALLEY_STEPS = 3
"""Corrections of a logarithm; each triples the digits, and a small imaginary part needs none."""


def log(z: Any) -> Any:
    """ln z on the branch of the real part; exact by Halley's iteration on e^w = z."""
    if not isinstance(z, Multicomplex):
        return np.log(z)
    w = Multicomplex(log(z.re), z.im / z.re)
    if _fast.get():
        return w
    if z.order == 1:
        return Multicomplex(np.log(np.hypot(z.re, z.im)), np.arctan2(z.im, z.re))
    for _ in range(HALLEY_STEPS):
        e = exp(w)
        w = w + 2.0 * (z - e) / (z + e)
    return w


def sqrt(z: Any) -> Any:
    """The root that continues the positive one; finite at (h i)^2, where it is h i.

    With r = sqrt(a^2 + b^2): sqrt((a + r) / 2) + b / (2 sqrt((a + r) / 2)) i.
    """
    if not isinstance(z, Multicomplex):
        return np.sqrt(z)
    a, b = z.re, z.im
    if z.order == 1:
        w = np.sqrt(np.asarray(a) + 1j * np.asarray(b))
        return Multicomplex(np.real(w), np.imag(w))
    s = _root((a + _root(a * a + b * b)) * 0.5)
    return Multicomplex(s, _ratio(b, 2.0 * s))


def _root(z: Any) -> Any:
    """Square root inside a square root: the argument may be a negative real number."""
    if isinstance(z, Multicomplex):
        return sqrt(z)
    return np.sqrt(np.maximum(z, 0.0))


def _ratio(b: Any, s: Any) -> Any:
    """b / s, where 0 / 0 is 0."""
    tiny = np.where(np.abs(_largest(s)) == 0.0, 1.0, 0.0)
    return b / (s + tiny)


def _largest(z: Any) -> Any:
    if isinstance(z, Multicomplex):
        return np.maximum(_largest(z.re), _largest(z.im))
    return np.abs(z)


def power(z: Any, exponent: Any) -> Any:
    """Power z^c: products for small whole c, e^(c ln z) otherwise (eq. 4.10 when accelerated)."""
    if isinstance(exponent, Multicomplex):
        return exp(exponent * log(z))
    if np.ndim(exponent) == 0:
        c = float(exponent)
        if c == 0.5:
            return sqrt(z)
        if c == int(c) and abs(c) <= 64:
            n = abs(int(c))
            out: Any = None
            square = z
            while n:
                if n & 1:
                    out = square if out is None else out * square
                n >>= 1
                if n:
                    square = square * square
            if out is None:
                return z * 0.0 + 1.0
            return out if c > 0 else 1.0 / out
    if not isinstance(z, Multicomplex):
        return np.power(z, exponent)
    if _fast.get():
        r = power(z.re, exponent)
        return Multicomplex(r, exponent * (r / z.re) * z.im)
    return exp(exponent * log(z))


def arctan(z: Any) -> Any:
    """atan z, by Newton's iteration on tan w = z from the real part."""
    if not isinstance(z, Multicomplex):
        return np.arctan(z)
    w = Multicomplex(arctan(z.re), z.im / (1.0 + z.re * z.re))
    if _fast.get():
        return w
    for _ in range(HALLEY_STEPS):
        c, s = cos(w), sin(w)
        w = w + (z * c - s) * c / (1.0 + z * s * c - s * s)
    return w


def _maximum(a: Any, b: Any) -> Any:
    return where(_real(a) >= _real(b), a, b)


def _minimum(a: Any, b: Any) -> Any:
    return where(_real(a) <= _real(b), a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """The choice of np.where for numbers of any order."""
    n = max(order_of(a), order_of(b))
    if n == 0:
        return np.where(condition, a, b)
    a, b = (z if order_of(z) == n else _promote(z, n) for z in (a, b))
    return Multicomplex(where(condition, a.re, b.re), where(condition, a.im, b.im))


def _promote(z: Any, n: int) -> Any:
    zero = z * 0.0
    while order_of(z) < n:
        z = Multicomplex(z, zero)
        zero = z * 0.0
    return z


_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.exp: exp, np.log: log, np.sqrt: sqrt, np.sin: sin, np.cos: cos, np.sinh: sinh,
    np.cosh: cosh, np.tanh: tanh, np.tan: tan, np.arctan: arctan, np.power: power,
    np.maximum: _maximum, np.minimum: _minimum,
    np.absolute: lambda z: abs(z), np.fabs: lambda z: abs(z), np.square: lambda z: z * z,
    np.negative: lambda z: -z, np.positive: lambda z: z, np.reciprocal: reciprocal,
    np.add: lambda a, b: a + b if isinstance(a, Multicomplex) else b + a,
    np.subtract: lambda a, b: a - b if isinstance(a, Multicomplex) else (-b) + a,
    np.multiply: lambda a, b: a * b if isinstance(a, Multicomplex) else b * a,
    np.divide: lambda a, b: a / b if isinstance(a, Multicomplex) else b.__rtruediv__(a),
}  # fmt: skip


def stepped(x: Any, units: list[int] | tuple[int, ...], order: int, step: float) -> Any:
    """x + step * sum of the given units, as a number of the given order; units count from 1."""
    z: Any = np.asarray(x, float)
    zero = np.zeros_like(z)
    for n in range(1, order + 1):
        unit: Any = zero + (step if n in units else 0.0)
        for m in range(1, n):
            unit = Multicomplex(unit, zero if m == 1 else _promote(zero, m - 1))
        z = Multicomplex(z, unit)
        if n == order:
            return z
    return z


def part(z: Any, units: list[int] | tuple[int, ...]) -> Any:
    """Coefficient of the product of the given units (eq. 4.25)."""
    chosen = set(units)
    while isinstance(z, Multicomplex):
        z = z.im if z.order in chosen else z.re
    return z
