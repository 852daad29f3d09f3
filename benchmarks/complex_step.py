"""Tables 4.1 to 4.3 of Luo 2020 on this machine, with JAX and autograd beside where installed.

4.1  x^(1/m): full complex promotion, imaginary part only, accelerated rule, closed derivative
4.2  first to third derivative of e^x / (x^4 + x^2 + 1), a million times
4.3  force and tangent of 10,000 tetrahedra, StVK and neo-Hookean: derived from the energy by the
     accelerated rules, closed forms by hand, JAX and autograd
and what everybody makes of log^2(1 - sqrt((x - 1)^2)) at x = 1.
Run: python benchmarks/complex_step.py [--out FILE.json]
"""

# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import argparse
import json
import time
from pathlib import Path

import numpy as np
import warp as wp

from pliant.complexstep import Multicomplex, derivative
from pliant.complexstep.kernel_types import add, div, dual1, dual2, kernel_type, mul, step_exp
from pliant.core.launch import launch, set_threads, to_device, zeros
from pliant.fem.cutting.quadrature_points import QuadratureData, gradient_at
from pliant.fem.forces.law_kernels import CLAMPED, EXACT, law_kernels
from pliant.fem.laws import LAWS

OPERATORS = (add, mul, div)  # Warp finds + * / of the kernel types by these names
stepped3, plain3 = kernel_type(3).stepped, kernel_type(3).plain
ROUNDS = 5


def best(function, rounds: int = ROUNDS) -> float:
    """Shortest of some runs [s], after one to warm up."""
    function()
    times = []
    for _ in range(rounds):
        t = time.perf_counter()
        function()
        times.append(time.perf_counter() - t)
    return min(times)


def side_by_side(functions: dict, rounds: int = 40) -> dict:
    """Shortest run of each [s], taken in turns so that all see the same machine."""
    times = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            t = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - t)
    return {name: min(t) for name, t in times.items()}


@wp.kernel
def _first(first: wp.int32, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    z = dual1(x[i], wp.float64(1.0))
    q = z * z
    f = step_exp(z) / (q * q + q + dual1(wp.float64(1.0), wp.float64(0.0)))
    out[i] = f.b


@wp.kernel
def _second(first: wp.int32, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    zero = wp.float64(0.0)
    z = dual2(x[i], wp.float64(1.0), wp.float64(1.0), zero)
    q = z * z
    f = step_exp(z) / (q * q + q + dual2(wp.float64(1.0), zero, zero, zero))
    out[i] = f.d


@wp.kernel
def _third(first: wp.int32, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    z = stepped3(x[i])
    q = z * z
    f = step_exp(z) / (q * q + q + plain3(wp.float64(1.0)))
    out[i] = f.h


@wp.kernel
def _first_closed(first: wp.int32, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    t = x[i]
    q = t * t
    d = q * q + q + wp.float64(1.0)
    top = q * q - wp.float64(4.0) * q * t + q - wp.float64(2.0) * t + wp.float64(1.0)
    out[i] = top * wp.exp(t) / (d * d)


def table_1() -> dict:
    """x^(1/m) over ten million numbers in NumPy."""
    x, m, h = np.linspace(1.0, 2.0, 10_000_000), 3.0, 1e-30
    z = x + 1j * h

    def imaginary():
        r, phi = np.hypot(x, h), np.arctan2(h, x)
        return r ** (1 / m) * np.sin(phi / m) / h

    return {
        "full promotion (B.4)": best(lambda: (z ** (1 / m)).imag / h, 2),
        "imaginary only (4.8)": best(imaginary, 2),
        "accelerated (4.10)": best(lambda: x ** (1 / m) / (x * m), 2),
        "closed": best(lambda: x ** (1 / m - 1) / m, 2),
    }


def rational(x, lib=np):
    """The test function of table 4.2."""
    return lib.exp(x) / (x**4 + x**2 + 1)


def table_2() -> dict:
    """A million derivatives."""
    n = 1_000_000
    host = np.full(n, 4.0)
    x, out = to_device(host, wp.float64), zeros(n, wp.float64)
    rows: dict = {
        "kernel types": {
            "1": best(lambda: launch(_first, n, [x, out])),
            "2": best(lambda: launch(_second, n, [x, out])),
            "3": best(lambda: launch(_third, n, [x, out])),
        },
        "closed (kernel)": {"1": best(lambda: launch(_first_closed, n, [x, out]))},
        "NumPy multicomplex, accelerated": {
            str(k): best(lambda k=k: derivative(rational, host, order=k, fast=True), 2)
            for k in (1, 2, 3)
        },
    }
    try:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        f = lambda t: rational(t, jnp)  # noqa: E731
        g, row, points = f, {}, jnp.asarray(host)
        for k in (1, 2, 3):
            g = jax.grad(g)
            h = jax.jit(jax.vmap(g))
            row[str(k)] = best(lambda h=h: h(points).block_until_ready())
        rows["JAX"] = row
    except ImportError:
        rows["JAX"] = None
    try:
        import autograd.numpy as anp
        from autograd import elementwise_grad

        g, row = lambda t: rational(t, anp), {}
        for k in (1, 2, 3):
            g = elementwise_grad(g)
            row[str(k)] = best(lambda g=g: g(host), 2)
        rows["autograd"] = row
    except ImportError:
        rows["autograd"] = None
    return rows


@wp.kernel
def _closed_force(
    first: wp.int32,
    law: wp.int32,
    d: QuadratureData,
    u: wp.array(dtype=wp.vec3d),
    p: wp.array2d(dtype=wp.float64),
    out: wp.array2d(dtype=wp.vec3d),
):
    i = first + wp.tid()
    r = d.row[i]
    unit = wp.identity(n=3, dtype=wp.float64)
    A = unit + gradient_at(d, i, 0, u)
    P = wp.mat33d()
    if law == 0:
        C = wp.transpose(A) * A
        t = wp.float64(0.5) * (wp.trace(C) - wp.float64(3.0))
        P = A * ((p[i, 0] * t - p[i, 1]) * unit + p[i, 1] * C)
    else:
        B = wp.transpose(wp.inverse(A))
        P = p[i, 1] * (A - B) + p[i, 0] * wp.log(wp.determinant(A)) * B
    for a in range(4):
        out[i, a] = d.weight[r, 0] * (P * d.gradient[r, a])


@wp.kernel
def _closed_tangent(
    first: wp.int32,
    law: wp.int32,
    d: QuadratureData,
    u: wp.array(dtype=wp.vec3d),
    p: wp.array2d(dtype=wp.float64),
    blocks: wp.array2d(dtype=wp.mat33d),
):
    """Ten blocks of a tetrahedron, by the textbook formulas."""
    i = first + wp.tid()
    r = d.row[i]
    w = d.weight[r, 0]
    unit = wp.identity(n=3, dtype=wp.float64)
    A = unit + gradient_at(d, i, 0, u)
    lam = w * p[i, 0]
    mu = w * p[i, 1]
    if law == 0:
        E = wp.float64(0.5) * (wp.transpose(A) * A - unit)
        S = lam * wp.trace(E) * unit + wp.float64(2.0) * mu * E
        B = A * wp.transpose(A)
        for a in range(4):
            ga = d.gradient[r, a]
            fa = A * ga
            for b in range(a + 1):
                gb = d.gradient[r, b]
                fb = A * gb
                blocks[i, a * (a + 1) / 2 + b] = (
                    wp.dot(ga, S * gb) * unit
                    + lam * wp.outer(fa, fb)
                    + mu * (wp.outer(fb, fa) + wp.dot(ga, gb) * B)
                )
    else:
        B = wp.transpose(wp.inverse(A))
        c = mu - lam * wp.log(wp.determinant(A))
        for a in range(4):
            ga = d.gradient[r, a]
            ha = B * ga
            for b in range(a + 1):
                gb = d.gradient[r, b]
                hb = B * gb
                blocks[i, a * (a + 1) / 2 + b] = (
                    mu * wp.dot(ga, gb) * unit + lam * wp.outer(ha, hb) + c * wp.outer(hb, ha)
                )


def table_3() -> dict:
    """Force and tangent of 10,000 tetrahedra."""
    import pliant as pl

    n = 10_000
    rng = np.random.default_rng(0)
    corners = rng.standard_normal((n, 4, 3)) * 0.1 + np.array(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    )
    body = pl.TetBody((corners.reshape(-1, 3), np.arange(4 * n).reshape(n, 4)))
    return {
        name: _law_row(body, name, number, rng)
        for number, name in enumerate(("st-venant-kirchhoff", "neo-hookean"))
    }


def _law_row(body, name, number, rng) -> dict:
    import pliant as pl
    from pliant.dynamics.implicit import ImplicitModel

    n = len(body.cells)
    law = LAWS[name].from_moduli(1e3, 0.3)
    h = ImplicitModel(pl.Scene(body, law=law)).elastic.operator
    u = to_device(0.03 * rng.standard_normal((4 * n, 3)), wp.vec3d)
    gradients = h.data.gradient.numpy()[body.geometry_row]
    F = np.eye(3) + np.einsum("cai,caj->cij", u.numpy()[body.cells], gradients)
    p = h.parameters
    forces, blocks = zeros((n, 4), wp.vec3d), zeros((n, 10), wp.mat33d)
    k, wide = law_kernels(law.energy), zeros((n, 4), wp.vec4d)
    still = [u, h.lam, h.mu, 0.0]  # no viscous part

    def tangent(way):
        launch(k.tangent, n, [h.data, u, p, 1.0, int(way), *still, blocks])

    times = side_by_side({
        "derived force": lambda: launch(k.forces, n, [h.data, u, p, u, *still, wide]),
        "closed force": lambda: launch(_closed_force, n, [number, h.data, u, p, forces]),
        "derived tangent": lambda: tangent(k.exact),
        "closed tangent": lambda: launch(_closed_tangent, n, [number, h.data, u, p, blocks]),
    })  # fmt: skip
    slow = side_by_side({
        "tangent by stretches": lambda: tangent(EXACT),
        "tangent, clamped": lambda: tangent(CLAMPED),
    }, 5)  # fmt: skip
    row = {
        way: {what: times[f"{way} {what}"] for what in ("force", "tangent")}
        for way in ("derived", "closed")
    }
    ratios = {what: row["derived"][what] / row["closed"][what] for what in ("force", "tangent")}
    row["derived"] |= slow
    return {
        **row, "derived / closed": ratios, "JAX": _jax_row(name, F, law),
        "autograd": _autograd_row(name, F, law),
    }  # fmt: skip


def _autograd_row(name, F, law):
    try:
        import autograd.numpy as anp
        from autograd import elementwise_grad
    except ImportError:
        return None
    lam, mu = law.values["lam"], law.values["mu"]

    def psi(A):
        """Energies of all matrices at once: their sum's gradient is every stress."""
        if name == "neo-hookean":
            log_J = anp.log(anp.linalg.det(A))
            I1 = anp.sum(A * A, axis=(1, 2))
            return anp.sum(mu / 2 * (I1 - 3) - mu * log_J + lam / 2 * log_J**2)
        E = (anp.einsum("cki,ckj->cij", A, A) - anp.eye(3)) / 2
        trace = E[:, 0, 0] + E[:, 1, 1] + E[:, 2, 2]
        return anp.sum(lam / 2 * trace**2 + mu * anp.sum(E * E, axis=(1, 2)))

    stress = elementwise_grad(psi)

    def tangent():
        for i in range(3):
            for j in range(3):
                elementwise_grad(lambda A, i=i, j=j: anp.sum(stress(A)[:, i, j]))(F)

    return {"force": best(lambda: stress(F), 2), "tangent": best(tangent, 1)}


def _jax_row(name, F, law):
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    lam, mu = law.values["lam"], law.values["mu"]

    def psi(A):
        if name == "neo-hookean":
            log_J = jnp.log(jnp.linalg.det(A))
            return mu / 2 * (jnp.sum(A * A) - 3) - mu * log_J + lam / 2 * log_J**2
        E = (A.T @ A - jnp.eye(3)) / 2
        return lam / 2 * jnp.trace(E) ** 2 + mu * jnp.sum(E * E)

    A = jnp.asarray(F)
    force = jax.jit(jax.vmap(jax.grad(psi)))
    tangent = jax.jit(jax.vmap(jax.hessian(psi)))
    return {
        "force": best(lambda: force(A).block_until_ready()),
        "tangent": best(lambda: tangent(A).block_until_ready()),
    }


def kink() -> dict:
    """First and second derivative of log^2(1 - sqrt((x - 1)^2)) at 1."""

    def f(x, lib=np):
        return lib.log(1 - lib.sqrt((x - 1) ** 2)) ** 2

    out: dict = {"complex step": [float(derivative(f, 1.0, order=k)) for k in (1, 2)]}
    try:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        g = jax.grad(lambda x: f(x, jnp))
        out["JAX"] = [float(g(1.0)), float(jax.grad(g)(1.0))]
    except ImportError:
        out["JAX"] = None
    try:
        import autograd.numpy as anp
        from autograd import grad

        g = grad(lambda x: f(x, anp))
        with np.errstate(all="ignore"):
            out["autograd"] = [float(g(1.0)), float(grad(g)(1.0))]
    except ImportError:
        out["autograd"] = None
    return out


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    set_threads(1)
    assert Multicomplex(1.0, 1.0).order == 1
    result = {
        "table 4.1": table_1(), "table 4.2": table_2(), "table 4.3": table_3(), "kink": kink()
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
