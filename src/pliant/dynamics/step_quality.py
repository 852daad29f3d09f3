"""Whether the time step is short enough for the motion that was seen.

The angular frequency of a motion is read from its velocities: omega^2 = mean |v' - mean v'|^2 /
mean |v - mean v|^2 over nodes and time, v' their difference quotients; means over time are taken
out of every node, so that falling and rest do not count. At that frequency the integrator's
amplification matrix tells what it adds by itself: a damping ratio and a longer period.
"""

import numpy as np

from pliant.dynamics.scene import Scene

LARGEST_ELONGATION = 0.02
"""Share of a period by which the scheme may be late before a run says so; E is then 4 % off."""

LARGEST_SHARE = 0.25
"""Numerical damping over the material's own before a run says so."""

LEAST_SEEN = 0.1
"""Angle [rad] through which a motion must have gone to be one: a falling body's velocities change
evenly but for rounding, and a period of 1e14 s is none."""

SMALLEST_RATIO = 2e-3
"""Numerical damping ratio that nobody sees: a hundredth of the amplitude a period."""


def motion_frequency(velocities: np.ndarray, dt: float) -> float:
    """Angular frequency [1/s] of the motion in velocities (frames, nodes, dim); 0 if there is none.

    Frames are dt apart.
    """
    if len(velocities) < 4:
        return 0.0
    v = velocities - velocities.mean(axis=0)
    a = np.diff(velocities, axis=0) / dt
    a = a - a.mean(axis=0)
    still = float(np.mean(v * v))
    if still <= 0.0:
        return 0.0
    # a difference quotient sees sin(w dt / 2) / (dt / 2) instead of w
    seen = float(np.sqrt(np.mean(a * a) / still)) * dt / 2.0
    omega = 2.0 / dt * float(np.arcsin(min(seen, 1.0)))
    return omega if omega * dt * len(velocities) > LEAST_SEEN else 0.0


def step_warnings(scene: Scene, velocities: np.ndarray) -> list[str]:
    """Sentences on a time step that is too long for the motion in velocities, one a frame."""
    scheme = scene.integrator
    omega = motion_frequency(velocities, scheme.dt)
    if omega <= 0.0:
        return []
    damping, late = scheme.numerical_errors(omega)
    m = scene.material
    own = 0.5 * (m.mass_damping / omega + m.stiffness_damping * omega)
    period = 2.0 * np.pi / omega
    steps = period / scheme.dt
    out = []
    if late > LARGEST_ELONGATION:
        out.append(
            f"The time step is long for this motion: {steps:.1f} steps a period of {period:.3g} s, "
            f"so {scheme.name} makes the period {late:.1%} too long; use dt <= "
            f"{scheme.dt * np.sqrt(LARGEST_ELONGATION / late):.2g} s."
        )
    if damping > max(LARGEST_SHARE * own, SMALLEST_RATIO):
        other = "" if scheme.name == "GeneralisedAlpha" else ", or GeneralisedAlpha"
        out.append(
            f"{scheme.name} damps this motion by itself, with a ratio of {damping:.2g} (the "
            f"material's own is {own:.2g}): use a shorter step{other}."
        )
    return out
