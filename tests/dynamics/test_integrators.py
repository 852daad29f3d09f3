"""Each table against its published order, amplification and period elongation."""

import numpy as np
import pytest

import pliant.dynamics.integrators as ti

SECOND_ORDER = [
    ti.Newmark1, ti.Newmark2, ti.Newmark3, ti.CentralDifferences, ti.LinearAcceleration,
    lambda dt: ti.HHT(dt, alpha=-0.1),
]  # fmt: skip


def eigenvalues(scheme, omega=2 * np.pi, zeta=0.0):
    return np.linalg.eigvals(scheme.amplification(omega, zeta))


def error_after_one_period(make, steps, zeta):
    """Damped oscillator u'' + 2 z w u' + w^2 u = 0, w = 2 pi, from u = 1, v = 0.5."""
    w = 2 * np.pi
    wd = w * np.sqrt(1 - zeta**2)
    u0, v0 = 1.0, 0.5
    state = np.array([u0, v0, -2 * zeta * w * v0 - w * w * u0])
    A = make(1.0 / steps).amplification(w, zeta)
    for _ in range(steps):
        state = A @ state
    exact = np.exp(-zeta * w) * (u0 * np.cos(wd) + (v0 + zeta * w * u0) / wd * np.sin(wd))
    return abs(state[0] - exact)


@pytest.mark.parametrize("make", SECOND_ORDER)
@pytest.mark.parametrize("zeta", [0.0, 0.1])
def test_second_order(make, zeta):
    e1, e2 = (error_after_one_period(make, n, zeta) for n in (80, 160))
    assert np.log2(e1 / e2) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("make", [ti.ImplicitEuler, lambda dt: ti.Newmark1(dt, theta=0.6)])
def test_first_order(make):
    e1, e2 = (error_after_one_period(make, n, 0.1) for n in (640, 1280))
    assert np.log2(e1 / e2) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    ("alpha", "radius", "elongation"),
    [(0.0, 1.0, 0.03207), (-0.05, 0.90476, 0.03611), (-0.1, 0.81818, 0.03951),
     (-1.0 / 3.0, 0.5, 0.04672)],
)  # fmt: skip
def test_hht_published_values(alpha, radius, elongation):
    at_infinity = np.abs(eigenvalues(ti.HHT(1.0, alpha=alpha), omega=1e7)).max()
    assert at_infinity == pytest.approx(radius, abs=2e-5)
    values = eigenvalues(ti.HHT(0.1, alpha=alpha))
    turning = values[np.argmax(np.abs(values.imag))]
    period = 2 * np.pi / abs(np.angle(turning)) * 0.1
    assert period - 1.0 == pytest.approx(elongation, abs=2e-5)


@pytest.mark.parametrize(
    ("dt", "kept", "ratio"), [(0.01, 0.8212, 0.0314), (0.05, 0.3901, 0.1546), (0.1, 0.1894, 0.2966)]
)
def test_implicit_euler_damping(dt, kept, ratio):
    values = eigenvalues(ti.ImplicitEuler(dt))
    turning = values[np.argmax(np.abs(values.imag))]
    assert abs(turning) ** (1.0 / dt) == pytest.approx(kept, abs=1e-4)
    exponent = np.log(turning)
    assert -exponent.real / abs(exponent.imag) == pytest.approx(ratio, abs=1e-4)


@pytest.mark.parametrize("make", [ti.Newmark1, ti.Newmark2])
@pytest.mark.parametrize("omega_dt", [0.1, 1.0, 10.0, 1000.0])
def test_trapezoidal_rules_keep_the_amplitude(make, omega_dt):
    values = eigenvalues(make(1.0), omega=omega_dt)
    turning = np.sort(np.abs(values))[-2:]
    assert turning == pytest.approx([1.0, 1.0], abs=1e-10)


@pytest.mark.parametrize(
    ("make", "limit"),
    [(ti.CentralDifferences, 2.0), (ti.LinearAcceleration, 2 * np.sqrt(3)),
     (ti.Newmark3, 2 * np.sqrt(3))],
)  # fmt: skip
def test_stability_limits(make, limit):
    def radius(w):
        return np.abs(eigenvalues(make(1.0), omega=w)).max()

    assert radius(0.999 * limit) < 1.0 + 1e-9
    assert radius(1.01 * limit) > 1.0 + 1e-3


def test_newmark1_with_theta_one_is_implicit_euler():
    a = ti.Newmark1(0.1, theta=1.0).amplification(3.0, 0.05)[:2, :2]
    b = ti.ImplicitEuler(0.1).amplification(3.0, 0.05)[:2, :2]
    assert a == pytest.approx(b, abs=1e-13)


def test_linear_acceleration_and_newmark3_are_the_same_scheme():
    a = ti.LinearAcceleration(0.1)
    b = ti.Newmark3(0.1)
    w, z = 4.0, 0.02
    state = np.array([0.3, -0.2, -2 * z * w * -0.2 - w * w * 0.3])  # in equilibrium
    assert a.amplification(w, z) @ state == pytest.approx(b.amplification(w, z) @ state, abs=1e-12)
