"""Time integrators as tables of numbers (seed 000, section 2.6).

Every scheme for M a + D v + K u = f is one linear solve for an unknown x,

    (cM M + cD D + cK K) x = sum over z in (u, v, a) of (rM M + rD D + rK K) z + f_new f' + f_old f,

after which u', v', a' are linear in x, u, v, a. A new scheme is a new function here; the forward
step, its tangent and its adjoint read the table and need no change.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from pliant.core.errors import BadInput

Row = tuple[float, float, float]


@dataclass(frozen=True)
class Integrator:
    """A scheme with its time step filled in.

    system: (cM, cD, cK). history[z] = (rM, rD, rK) for z = u, v, a. force: (f_new, f_old).
    next_u, next_v, next_a: weights of (x, u, v, a).
    predictor: weights of (u, v, a) whose sum estimates u' before the solve; rotations and contact
    are taken there. The estimate errs by O(dt^2), so corotation keeps the scheme's order.
    stable_to: largest omega * dt of an undamped oscillator that does not grow.
    """

    name: str
    dt: float
    parameters: dict[str, float]
    system: Row
    history: tuple[Row, Row, Row]
    force: tuple[float, float]
    next_u: tuple[float, float, float, float]
    next_v: tuple[float, float, float, float]
    next_a: tuple[float, float, float, float]
    predictor: Row
    stable_to: float = inf

    def mass_weights(self, mass_damping: float) -> np.ndarray:
        """Weights of M in the residual for (x, u, v, a), with D = alpha M + beta K resolved."""
        return self._weights(0, mass_damping)

    def stiffness_weights(self, stiffness_damping: float) -> np.ndarray:
        """Weights of K in the residual for (x, u, v, a)."""
        return self._weights(2, stiffness_damping)

    @property
    def damping_weights(self) -> np.ndarray:
        """Weights of D in the residual for (x, u, v, a)."""
        return np.array([self.system[1], *(-row[1] for row in self.history)])

    def _weights(self, own: int, damping: float) -> np.ndarray:
        left = self.system[own] + damping * self.system[1]
        right = [-(row[own] + damping * row[1]) for row in self.history]
        return np.array([left, *right])

    @property
    def force_total(self) -> float:
        """f_new + f_old: what the residual counts a constant force with."""
        return self.force[0] + self.force[1]

    @property
    def first_guess(self) -> Row:
        """Weights of (u, v, a) whose sum is the x of an unchanged acceleration.

        A start of the linear solve that errs by O(dt^3); the seed's u + dt v (eq. 4.4.18) errs by
        O(dt^2) and costs about one iteration more.
        """
        x, u, v, a = self.next_a
        return (-u / x, -v / x, (1.0 - a) / x)

    @property
    def damps(self) -> bool:
        """Whether high frequencies decay: the largest factor of a very stiff oscillator is < 1."""
        A = self.amplification(1e6 / self.dt)
        return bool(np.abs(np.linalg.eigvals(A)).max() < 1.0 - 1e-3)

    def numerical_errors(self, omega: float) -> tuple[float, float]:
        """(damping ratio, period elongation) that the scheme itself adds to an oscillation omega.

        From the eigenvalue e^(-zeta w' dt + i w' dt) of the amplification matrix that follows it.
        """
        values = np.linalg.eigvals(self.amplification(omega))
        near = values[np.argmax(values.imag)]
        turn, size = float(np.angle(near)), float(np.abs(near))
        if turn <= 0.0 or size <= 0.0:
            return 1.0, np.inf
        return -float(np.log(size)) / turn, omega * self.dt / turn - 1.0

    @property
    def order(self) -> float:
        """1 or 2, from how the error of a period falls with the step."""

        def error(turn: float) -> float:
            values = np.linalg.eigvals(self.amplification(turn / self.dt))
            return float(np.abs(np.log(values[np.argmax(values.imag)]) / (1j * turn) - 1.0))

        return 2.0 if error(0.2) > 3.0 * error(0.1) else 1.0

    def amplification(self, omega: float, damping_ratio: float = 0.0) -> np.ndarray:
        """3x3 matrix that takes (u, v, a) to the next step for a free oscillator w = omega."""
        M, D, K = 1.0, 2.0 * damping_ratio * omega, omega**2
        terms = np.array([M, D, K])
        x = (np.array(self.history) @ terms) / (np.array(self.system) @ terms)
        rows = []
        for weights in (self.next_u, self.next_v, self.next_a):
            rows.append(weights[0] * x + np.array(weights[1:]))
        return np.array(rows)


def _check_step(dt: float) -> float:
    if not (np.isfinite(dt) and dt > 0.0):
        raise BadInput(f"The time step dt must be positive, not {dt}.")
    return float(dt)


def _inside(name: str, value: float, low: float, high: float) -> float:
    if not (low <= value <= high):
        raise BadInput(f"{name} must lie between {low:g} and {high:g}, not {value}.")
    return float(value)


def Newmark1(dt: float, theta: float = 0.5) -> Integrator:
    """Generalised trapezoidal rule (eq. 2.6.2), 1/2 <= theta <= 1; second order at 1/2.

    u' = u + dt (theta v' + (1 - theta) v) and the same for v; theta = 1 is implicit Euler.
    """
    h, t = _check_step(dt), _inside("theta", theta, 0.5, 1.0)
    v = (1.0 / (t * h), -1.0 / (t * h), -(1.0 - t) / t, 0.0)
    return Integrator(
        name="Newmark1",
        dt=h,
        parameters={"theta": t},
        system=(1.0 / (t * h), 1.0, t * h),
        history=((1.0 / (t * h), 1.0, -(1.0 - t) * h), (1.0 / t, 0.0, 0.0), (0.0, 0.0, 0.0)),
        force=(t * h, (1.0 - t) * h),
        next_u=(1.0, 0.0, 0.0, 0.0),
        next_v=v,
        next_a=(v[0] / h, v[1] / h, (v[2] - 1.0) / h, 0.0),
        predictor=(1.0, h, 0.0),
    )


def Newmark2(dt: float) -> Integrator:
    """Average acceleration, the trapezoidal rule (eq. 2.6.5): conserves energy when linear."""
    h = _check_step(dt)
    return Integrator(
        name="Newmark2",
        dt=h,
        parameters={},
        system=(4.0 / h**2, 2.0 / h, 1.0),
        history=((4.0 / h**2, 2.0 / h, 0.0), (4.0 / h, 1.0, 0.0), (1.0, 0.0, 0.0)),
        force=(1.0, 0.0),
        next_u=(1.0, 0.0, 0.0, 0.0),
        next_v=(2.0 / h, -2.0 / h, -1.0, 0.0),
        next_a=(4.0 / h**2, -4.0 / h**2, -4.0 / h, -1.0),
        predictor=(1.0, h, 0.5 * h**2),
    )


def Newmark3(dt: float) -> Integrator:
    """Linear acceleration solved for the increment of u (eq. 2.6.8).

    The seed subtracts the old equation of motion and recovers a' from the new one; with a in
    equilibrium both are the table below, which needs no inverse of M.
    """
    h = _check_step(dt)
    return Integrator(
        name="Newmark3",
        dt=h,
        parameters={},
        system=(6.0 / h**2, 3.0 / h, 1.0),
        history=((0.0, 0.0, -1.0), (6.0 / h, 2.0, 0.0), (2.0, 0.5 * h, 0.0)),
        force=(1.0, 0.0),
        next_u=(1.0, 1.0, 0.0, 0.0),
        next_v=(3.0 / h, 0.0, -2.0, -0.5 * h),
        next_a=(6.0 / h**2, 0.0, -6.0 / h, -2.0),
        predictor=(1.0, h, 0.5 * h**2),
        stable_to=sqrt(12.0),
    )


def _newmark_family(
    name, dt, beta, gamma, alpha=0.0, parameters=None, *, old_inertia=0.0
) -> Integrator:
    """Newmark(beta, gamma) with the HHT shift alpha <= 0, solved for the acceleration.

    old_inertia: share of the old acceleration in the balance.
    """
    h, s = dt, 1.0 + alpha  # s: share of the new time level
    u_a, v_a = (0.5 - beta) * h**2, (1.0 - gamma) * h
    return Integrator(
        name=name,
        dt=h,
        parameters=parameters or {},
        system=(1.0 - old_inertia, s * gamma * h, s * beta * h**2),
        history=(
            (0.0, 0.0, -1.0),
            (0.0, -1.0, -s * h),
            (-old_inertia, -s * v_a, -s * u_a),
        ),
        force=(s, -alpha),
        next_u=(beta * h**2, 1.0, h, u_a),
        next_v=(gamma * h, 0.0, 1.0, v_a),
        next_a=(1.0, 0.0, 0.0, 0.0),
        predictor=(1.0, h, 0.5 * h**2),
    )


def CentralDifferences(dt: float) -> Integrator:
    """Explicit central differences (eq. 2.6.6), as Newmark(0, 1/2); stable for omega dt < 2.

    The three-level formula's velocity (u' - u_before) / (2 dt) is the v of this form.
    """
    return replace(_newmark_family("CentralDifferences", _check_step(dt), 0.0, 0.5), stable_to=2.0)


def LinearAcceleration(dt: float) -> Integrator:
    """Implicit linear acceleration (eq. 2.6.7), Newmark(1/6, 1/2); stable for omega dt < 3.46."""
    table = _newmark_family("LinearAcceleration", _check_step(dt), 1.0 / 6.0, 0.5)
    return replace(table, stable_to=sqrt(12.0))


def HHT(dt: float, alpha: float = -0.1) -> Integrator:
    """Hilber-Hughes-Taylor (eq. 2.6.9), -1/3 <= alpha <= 0 (the seed writes -alpha).

    Second order; high frequencies decay by (1 + alpha) / (1 - alpha) a step.
    """
    a = _inside("alpha", alpha, -1.0 / 3.0 - 1e-12, 0.0)
    return _newmark_family("HHT", _check_step(dt), (1.0 - a) ** 2 / 4.0, 0.5 - a, a, {"alpha": a})


def GeneralisedAlpha(dt: float, spectral_radius: float = 0.8) -> Integrator:
    """Generalised-alpha (Chung and Hulbert 1993), 0 <= spectral_radius <= 1, second order.

    High frequencies decay by spectral_radius a step; of all second-order schemes that do so it
    takes the least from low ones: at ten steps a period and a radius of 0.8 a damping ratio of
    0.00016, where HHT with the same decay takes 0.0023.
    """
    r = _inside("spectral_radius", spectral_radius, 0.0, 1.0)
    m, f = (2.0 * r - 1.0) / (r + 1.0), r / (r + 1.0)
    return _newmark_family(
        "GeneralisedAlpha", _check_step(dt), (1.0 - m + f) ** 2 / 4.0, 0.5 - m + f, -f,
        {"spectral_radius": r}, old_inertia=m,
    )  # fmt: skip


def ImplicitEuler(dt: float) -> Integrator:
    """First order, very stable, and damps by itself: ratio about omega dt / 2."""
    h = _check_step(dt)
    return Integrator(
        name="ImplicitEuler",
        dt=h,
        parameters={},
        system=(1.0 / h**2, 1.0 / h, 1.0),
        history=((1.0 / h**2, 1.0 / h, 0.0), (1.0 / h, 0.0, 0.0), (0.0, 0.0, 0.0)),
        force=(1.0, 0.0),
        next_u=(1.0, 0.0, 0.0, 0.0),
        next_v=(1.0 / h, -1.0 / h, 0.0, 0.0),
        next_a=(1.0 / h**2, -1.0 / h**2, -1.0 / h, 0.0),
        predictor=(1.0, h, 0.0),
    )


INTEGRATORS = {
    f.__name__: f
    for f in (
        GeneralisedAlpha, Newmark1, Newmark2, Newmark3, CentralDifferences, LinearAcceleration,
        HHT, ImplicitEuler,
    )
}  # fmt: skip
"""Schemes by name, for scene files."""
