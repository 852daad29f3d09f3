"""Complex and multicomplex steps: numbers of seed 004, tensor functions, kernel types."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

from pliant.complexstep import (
    Multicomplex,
    accelerated,
    derivative,
    gradient,
    hessian,
    mixed_partial,
    nested,
    part,
    product_chain,
    stepped,
    tensors,
)
from pliant.complexstep.kernel_types import (
    Dual1,
    Dual2,
    add,
    div,
    dual1,
    dual2,
    kernel_type,
    mul,
    step_cos,
    step_exp,
    step_log,
    step_pow,
    step_sin,
    step_sqrt,
    sub,
)
from pliant.core.errors import BadInput
from pliant.core.launch import launch, zeros

STEPS = [10.0**-k for k in range(20, 61, 4)]
LIMIT = {1: 1e-13, 2: 1e-12, 3: 1e-10}


def rational(x):
    return np.exp(x) / (x**4 + x**2 + 1)


def exact_derivative(order):
    """d^n/dx^n of e^x / q at 4: e^x N_n / q^(n+1) with whole-number polynomials N_n."""
    q = np.polynomial.Polynomial([1, 0, 1, 0, 1])
    N = np.polynomial.Polynomial([1])
    for n in range(order):
        N = N * q + N.deriv() * q - (n + 1) * N * q.deriv()
    value = Fraction(round(N(4))) / Fraction(round(q(4))) ** (order + 1)
    return float(value) * np.exp(4.0)


def test_known_first_derivative():
    assert exact_derivative(1) == pytest.approx(0.006593183194438, abs=1e-15)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_are_flat_over_forty_decades(order, fast):
    for step in STEPS:
        value = derivative(rational, 4.0, order=order, step=step, fast=fast)
        assert value == pytest.approx(exact_derivative(order), rel=LIMIT[order]), step


def test_differences_are_not():
    """What forward and central differences reach at their best and at small steps."""
    exact = exact_derivative(1)
    h = 10.0 ** -np.arange(1, 20)
    forward = (rational(4.0 + h) - rational(4.0)) / h
    central = (rational(4.0 + h) - rational(4.0 - h)) / (2 * h)
    assert np.abs(forward / exact - 1).min() > 1e-10
    assert np.abs(central / exact - 1).min() > 1e-13
    assert forward[-1] == 0.0
    assert central[-1] == 0.0


@pytest.mark.parametrize("fast", [False, True])
def test_kink(fast):
    def kinked(x):
        return np.log(1 - np.sqrt((x - 1) ** 2)) ** 2

    assert derivative(kinked, 1.0, fast=fast) == 0.0
    assert derivative(kinked, 1.0, order=2, fast=fast) == pytest.approx(2.0, rel=1e-14)


@pytest.mark.parametrize(("function", "exact"), [
    (np.exp, lambda x: np.exp(x)), (np.log, lambda x: 2.0 / x**3),
    (np.sin, lambda x: -np.cos(x)), (np.cos, lambda x: np.sin(x)),
    (np.sqrt, lambda x: 0.375 * x**-2.5), (np.sinh, np.cosh), (np.cosh, np.sinh),
    (lambda x: x**2.5, lambda x: 2.5 * 1.5 * 0.5 * x**-0.5),
    (lambda x: x**-2, lambda x: -24.0 * x**-5),
    (np.arctan, lambda x: (6 * x**2 - 2) / (1 + x**2) ** 3),
    (np.tanh, lambda x: -2 / np.cosh(x) ** 4 + 4 * np.tanh(x) ** 2 / np.cosh(x) ** 2),
])  # fmt: skip
def test_third_derivatives_of_elementary_functions(function, exact):
    x = np.array([0.4, 1.3, 2.2])
    for fast in (False, True):
        assert derivative(function, x, order=3, fast=fast) == pytest.approx(exact(x), rel=1e-11)


def test_mixed_partials():
    def f(x, y):
        return np.sin(x * y) + x**3 * np.exp(y)

    x, y = 1.3, 0.7
    exact = -y * y * x * np.cos(x * y) - 2 * y * np.sin(x * y) + 6 * x * np.exp(y)
    assert mixed_partial(f, [x, y], [2, 1]) == pytest.approx(exact, rel=1e-12)
    H = hessian(f, [x, y])
    assert H[0, 1] == pytest.approx(
        np.cos(x * y) - x * y * np.sin(x * y) + 3 * x**2 * np.exp(y), rel=1e-12
    )
    assert gradient(f, [x, y])[1] == pytest.approx(x * np.cos(x * y) + x**3 * np.exp(y), rel=1e-13)


def test_chains():
    x = 0.8
    factors = [np.sin, np.exp, lambda t: t**3, np.cos]
    z = [f(Multicomplex(np.array(x), np.array(1e-40))) for f in factors]
    exact = derivative(lambda t: np.sin(t) * np.exp(t) * t**3 * np.cos(t), x)
    assert product_chain(z).im / 1e-40 == pytest.approx(exact, rel=1e-13)
    with accelerated():
        slope = nested([np.sin, np.exp, np.log, np.cos], x)
    assert slope == pytest.approx(-np.sin(np.sin(x)) * np.cos(x), rel=1e-13)


def step_matrix(order, rng):
    A = np.eye(4) + 0.3 * rng.standard_normal((4, 4))
    B = [rng.standard_normal((4, 4)) for _ in range(order)]
    h = 1e-30
    z = stepped(A, (), order, h)
    for n, direction in enumerate(B, start=1):
        z = z + stepped(np.zeros((4, 4)), (n,), order, h) * direction
    return A, B, h, z


def test_tensor_functions():
    rng = np.random.default_rng(0)
    A, (B, C), h, z = step_matrix(2, rng)
    inv = np.linalg.inv(A)
    first = -inv @ B @ inv
    second = inv @ B @ inv @ C @ inv + inv @ C @ inv @ B @ inv
    W = tensors.inverse(z)
    assert part(W, (1,)) / h == pytest.approx(first, rel=1e-11)
    assert part(W, (1, 2)) / h**2 == pytest.approx(second, rel=1e-10, abs=1e-10)
    d = tensors.determinant(z)
    exact = np.linalg.det(A) * (np.trace(inv @ B) * np.trace(inv @ C) - np.trace(inv @ B @ inv @ C))
    assert part(d, (2,)) / h == pytest.approx(np.linalg.det(A) * np.trace(inv @ C), rel=1e-12)
    assert part(d, (1, 2)) / h**2 == pytest.approx(exact, rel=1e-11)
    b = rng.standard_normal((4, 1))
    assert part(tensors.solve(z, b), (1,)) / h == pytest.approx(first @ b, rel=1e-11)


def test_real_form_with_a_routine_left_alone():
    """Eq. 4.31: LAPACK's inverse of the real form, at a step it can resolve."""
    rng = np.random.default_rng(1)
    A, (B,), _, _ = step_matrix(1, rng)
    h = 1e-9
    W = tensors.through(np.linalg.inv, Multicomplex(A, h * B))
    inv = np.linalg.inv(A)
    assert W.im / h == pytest.approx(-inv @ B @ inv, rel=1e-12, abs=1e-12)


def test_polar_rotation():
    rng = np.random.default_rng(2)
    A = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    B = rng.standard_normal((3, 3))
    R = tensors.polar(Multicomplex(A, 1e-30 * B))
    spin = R.re.T @ (R.im / 1e-30)  # R^T dR is skew, and (tr S I - S) w = 2 axl(R^T dF)
    S = R.re.T @ A
    assert np.abs(spin + spin.T).max() < 1e-13
    w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    skew = R.re.T @ B
    axial = np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]])
    assert (np.trace(S) * np.eye(3) - S) @ w == pytest.approx(axial, rel=1e-11)


@wp.kernel
def _steps_in_a_kernel(
    first: wp.int32,
    x: wp.array(dtype=wp.float64),
    slope: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
):
    i = first + wp.tid()
    one = wp.float64(1.0)
    zero = wp.float64(0.0)
    z = dual1(x[i], one)
    unit = dual1(one, zero)
    f = step_exp(z) / (step_pow(z, wp.float64(4.0)) + z * z + unit) + step_log(z)
    slope[i] = f.b
    w = dual2(x[i], one, one, zero)
    unit2 = dual2(one, zero, zero, zero)
    g = step_exp(w) / (step_pow(w, wp.float64(4.0)) + w * w + unit2) + step_log(w)
    curvature[i] = g.d


def test_kernel_types():
    assert Dual1 is not Dual2
    assert {f.key for f in (add, mul, div)} == {"add", "mul", "div"}  # + * / in the kernel
    x = np.array([0.7, 2.0, 4.0])
    slope, curvature = zeros(3, wp.float64), zeros(3, wp.float64)
    launch(_steps_in_a_kernel, 3, [wp.array(x, dtype=wp.float64), slope, curvature])

    def f(t):
        return rational(t) + np.log(t)

    assert slope.numpy() == pytest.approx(derivative(f, x), rel=1e-13)
    assert curvature.numpy() == pytest.approx(derivative(f, x, order=2), rel=1e-12)


third_order, fourth_order = kernel_type(3), kernel_type(4)
dual3, stepped3, plain3 = third_order.make, third_order.stepped, third_order.plain
stepped4, plain4 = fourth_order.stepped, fourth_order.plain


@wp.kernel
def _third_in_a_kernel(
    first: wp.int32,
    x: wp.array(dtype=wp.float64),
    third: wp.array(dtype=wp.float64),
    every: wp.array(dtype=wp.float64),
    mixed: wp.array(dtype=wp.float64),
):
    i = first + wp.tid()
    z = stepped3(x[i])
    q = z * z
    f = step_exp(z) / (q * q + q + plain3(wp.float64(1.0)))
    third[i] = f.h
    g = step_sin(z) * step_sqrt(z) - step_cos(q) / step_log(z + z) + step_pow(z, wp.float64(2.5))
    every[i] = g.h
    one = wp.float64(1.0)
    zero = wp.float64(0.0)
    u = dual3(x[i], one, one, zero, zero, zero, zero, zero)  # x along i_1 and i_2
    v = dual3(x[i] * x[i], zero, zero, zero, one, zero, zero, zero)  # y along i_3
    mixed[i] = (step_sin(u * v) + u * u * u * step_exp(v)).h


@wp.kernel
def _fourth_in_a_kernel(
    first: wp.int32, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)
):
    i = first + wp.tid()
    z = stepped4(x[i])
    f = step_exp(z) / (step_pow(z, wp.float64(4.0)) + z * z + plain4(wp.float64(1.0)))
    out[i] = f.p


def test_kernel_types_of_third_order():
    assert sub.key == "sub"
    x = np.array([0.7, 2.0, 4.0])
    third, every, mixed = (zeros(3, wp.float64) for _ in range(3))
    launch(_third_in_a_kernel, 3, [wp.array(x, dtype=wp.float64), third, every, mixed])
    assert third.numpy()[2] == pytest.approx(exact_derivative(3), rel=1e-10)
    assert third.numpy() == pytest.approx(derivative(rational, x, order=3), rel=1e-11)

    def g(t):
        return np.sin(t) * np.sqrt(t) - np.cos(t * t) / np.log(t + t) + t**2.5

    def h(s, t):
        return np.sin(s * t) + s**3 * np.exp(t)

    assert every.numpy() == pytest.approx(derivative(g, x, order=3), rel=1e-11)
    assert mixed.numpy() == pytest.approx(mixed_partial(h, [x, x * x], [2, 1]), rel=1e-11)


def test_kernel_types_of_any_order():
    assert kernel_type(3) is third_order
    assert [third_order.field(u) for u in ((), (1,), (1, 2), (3,), (1, 2, 3))] == list("abdeh")
    assert kernel_type(5).field((1, 2, 3, 4, 5)) == "k31"
    assert third_order.exp is fourth_order.exp  # one name for all orders
    out = zeros(1, wp.float64)
    launch(_fourth_in_a_kernel, 1, [wp.array([4.0], dtype=wp.float64), out])
    assert out.numpy()[0] == pytest.approx(exact_derivative(4), rel=1e-10)
    with pytest.raises(BadInput, match="order"):
        kernel_type(0)


def test_kernel_types_compile_for_cuda(tmp_path):
    module = wp.get_module(_third_in_a_kernel.module.name)
    wp.compile_aot_module(module, device=None, arch=75, module_dir=str(tmp_path), use_ptx=True)
    made = [p for p in tmp_path.iterdir() if p.suffix in (".cubin", ".ptx")]
    assert made
    assert all(p.stat().st_size > 0 for p in made)
