"""Complex and bicomplex numbers as kernel types, with the rules of seed 004, section 4.5.

`Dual1` is a + b i with b infinitesimal; `Dual2` is a + b i_1 + c i_2 + d i_1 i_2. Operators and
elementary functions drop what is of higher order in the step, so a step of 1 gives the derivative
itself (the step's size cancels) and no number is ever tiny. A module whose kernels use + - * / on
them imports add, sub, mul and div as well: Warp looks operators up by these names.
"""

# ruff: noqa: F811 (overloads of Warp functions share a name)

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportRedeclaration=false

import warp as wp


@wp.struct
class Dual1:
    """a + b i."""

    a: wp.float64
    b: wp.float64


@wp.struct
class Dual2:
    """a + b i_1 + c i_2 + d i_1 i_2."""

    a: wp.float64
    b: wp.float64
    c: wp.float64
    d: wp.float64


@wp.func
def dual1(a: wp.float64, b: wp.float64) -> Dual1:
    """From its coefficients."""
    z = Dual1()
    z.a = a
    z.b = b
    return z


@wp.func
def dual2(a: wp.float64, b: wp.float64, c: wp.float64, d: wp.float64) -> Dual2:
    """From its coefficients."""
    z = Dual2()
    z.a = a
    z.b = b
    z.c = c
    z.d = d
    return z


@wp.func
def add(x: Dual1, y: Dual1) -> Dual1:
    """x + y."""
    return dual1(x.a + y.a, x.b + y.b)


@wp.func
def sub(x: Dual1, y: Dual1) -> Dual1:
    """x - y."""
    return dual1(x.a - y.a, x.b - y.b)


@wp.func
def mul(x: Dual1, y: Dual1) -> Dual1:
    """x y without the square of the step."""
    return dual1(x.a * y.a, x.a * y.b + x.b * y.a)


@wp.func
def div(x: Dual1, y: Dual1) -> Dual1:
    """x / y."""
    q = x.a / y.a
    return dual1(q, (x.b - q * y.b) / y.a)


@wp.func
def add(x: Dual2, y: Dual2) -> Dual2:
    """x + y."""
    return dual2(x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d)


@wp.func
def sub(x: Dual2, y: Dual2) -> Dual2:
    """x - y."""
    return dual2(x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d)


@wp.func
def mul(x: Dual2, y: Dual2) -> Dual2:
    """x y."""
    return dual2(
        x.a * y.a,
        x.a * y.b + x.b * y.a,
        x.a * y.c + x.c * y.a,
        x.a * y.d + x.d * y.a + x.b * y.c + x.c * y.b,
    )


@wp.func
def chained(x: Dual1, f: wp.float64, df: wp.float64) -> Dual1:
    """f(x) from its value and slope (eq. 4.17)."""
    return dual1(f, df * x.b)


@wp.func
def chained(x: Dual2, f: wp.float64, df: wp.float64, ddf: wp.float64) -> Dual2:
    """f(x) from its value, slope and curvature."""
    return dual2(f, df * x.b, df * x.c, df * x.d + ddf * x.b * x.c)


@wp.func
def div(x: Dual2, y: Dual2) -> Dual2:
    """x / y."""
    r = wp.float64(1.0) / y.a
    return mul(x, chained(y, r, -r * r, wp.float64(2.0) * r * r * r))


@wp.func
def step_exp(x: Dual1) -> Dual1:
    """e^x."""
    e = wp.exp(x.a)
    return chained(x, e, e)


@wp.func
def step_exp(x: Dual2) -> Dual2:
    """e^x."""
    e = wp.exp(x.a)
    return chained(x, e, e, e)


@wp.func
def step_log(x: Dual1) -> Dual1:
    """ln x."""
    return chained(x, wp.log(x.a), wp.float64(1.0) / x.a)


@wp.func
def step_log(x: Dual2) -> Dual2:
    """ln x."""
    r = wp.float64(1.0) / x.a
    return chained(x, wp.log(x.a), r, -r * r)


@wp.func
def step_pow(x: Dual1, c: wp.float64) -> Dual1:
    """x^c, one power only (eq. 4.10)."""
    p = wp.pow(x.a, c)
    return chained(x, p, c * p / x.a)


@wp.func
def step_pow(x: Dual2, c: wp.float64) -> Dual2:
    """x^c, one power only."""
    p = wp.pow(x.a, c)
    s = c * p / x.a
    return chained(x, p, s, (c - wp.float64(1.0)) * s / x.a)
