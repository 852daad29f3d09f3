"""The real beam with branches: swing and rest in one fit, and what the light run foretells.

A branch answers a swing and forgets it at rest, so that one material may be both as stiff as the
swing says and as soft as the sag does. Markers are trusted to half a millimetre in either: that is
what the model is good for (the hand, the clamp, the level), not what the cameras are, and it keeps
the many frames of a swing from outvoting the one of a rest.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from beam_runs import HUNG, LEVEL, ON_BEAM, REFERENCE, TIPS, beam, drop, recording, resting

import pliant as pl

RELEASED = {"gravity": 0.71, "load52": 0.43}
"""When the hand let go [s]."""

BEGIN, SEEN, END = 0.09, 0.12, 0.92
"""After that, a swing is simulated and seen, until [s]. Between the first two the branches find
their state: a start has none of their own."""

TRUSTED = 5e-4
"""Standard deviation of a marker [m], model and all."""

BRANCHES = (pl.Branch(6e4, 0.012), pl.Branch(1.5e4, 0.2))
"""Where fits start: what damps, and what creeps."""

ATTACHED = {"gravity": (), "load52": (HUNG,)}


def with_branches(scene: Any, branches: Sequence[pl.Branch]) -> Any:
    """Branches in place of the stiffness damping."""
    own = replace(scene.material, stiffness_damping=0.0, branches=tuple(branches))
    return replace(scene, material=own)


def at_rest(data: Path, run: str, branches: Sequence[pl.Branch]) -> pl.Experiment:
    """Where the markers came to rest."""
    x = resting(data, run, *ATTACHED[run])
    return pl.Experiment(with_branches(x.scene, branches), x.seen, f"{run}-rest")


def swinging(data: Path, run: str, branches: Sequence[pl.Branch]) -> pl.Experiment:
    """The free decay, against where the markers were held to within a millimetre."""
    tracks = recording(data, run).only(*TIPS)
    level = tracks.positions[LEVEL].mean(axis=0)
    part = tracks.between(RELEASED[run] + BEGIN, RELEASED[run] + END)
    later = part.times >= SEEN - BEGIN - 1e-9
    seen = replace(
        part, times=part.times[later], positions=part.positions[later], at=level,
        sigma=np.full(len(TIPS), TRUSTED),
    )  # fmt: skip
    start = pl.Start("state", modes=2, reference=REFERENCE)
    return pl.Experiment(with_branches(beam(*ATTACHED[run], start=start), branches), seen, run)


def first_state(data: Path, run: str) -> dict[str, tuple[float, float]]:
    """Amplitudes and velocities of a swing's start, as a fit begins with: the marker's own."""
    z = recording(data, run).only("tip1").positions[:, 0, 2]
    k = round(100.0 * (RELEASED[run] + BEGIN))
    return {
        f"start_amplitudes@{run}": (0.0, float(z[k] - z[-20:].mean())),
        f"start_velocities@{run}": (0.0, float(z[k + 1] - z[k - 1]) / 0.02),
    }


def together(data: Path, runs: Sequence[str], count: int, **options) -> pl.Fit:
    """Swing and rest of these runs in one fit of the modulus and `count` branches."""
    branches = BRANCHES[:count]
    experiments = [f(data, run, branches) for run in runs for f in (swinging, at_rest)]
    unknowns = {
        "youngs_modulus": 2.7e5,
        "branch_moduli": tuple(b.modulus for b in branches),
        "branch_times": tuple(b.time for b in branches),
    }
    for run in runs:
        unknowns |= first_state(data, run)
    return pl.reconstruct(experiments, unknowns=unknowns, **options)


def material_labels(fit: pl.Fit) -> list[str]:
    """Of what is shared."""
    return [x for x in fit.labels if "@" not in x]


def found(scene: pl.Scene, values: Iterable[float]) -> pl.Scene:
    """A scene of the material that the shared values say: modulus, moduli, times."""
    modulus, *rest = (float(v) for v in values)
    half = len(rest) // 2
    pairs = zip(rest[:half], rest[half:], strict=True)
    own = replace(scene.material, youngs_modulus=modulus)
    return with_branches(replace(scene, material=own), [pl.Branch(m, t) for m, t in pairs])


def modulus_at(values: Sequence[float], frequency: float) -> complex:
    """Storage and loss modulus [Pa] of modulus, moduli and times."""
    modulus, *rest = values
    half = len(rest) // 2
    x = 2j * np.pi * frequency * np.array(rest[half:])
    return complex(modulus + (np.array(rest[:half]) * x / (1.0 + x)).sum())


def ringing(scene: pl.Scene) -> tuple[float, float]:
    """Frequency [Hz] and damping ratio of a swing of 3 mm, as a damped sine tells them."""
    from scipy.optimize import least_squares

    start = pl.Start("state", modes=2, amplitudes=(0.0, 3e-3), reference=REFERENCE)
    run = pl.simulate(replace(scene, start=start), 280)
    z = 1e3 * run.at(np.array([ON_BEAM[1]]))[:, 0, 2]
    t = np.asarray(run.times)
    t, z = t[40:], z[40:]

    def missed(p: np.ndarray) -> np.ndarray:
        a, b, w, d, mean, slope = p
        return np.exp(-d * t) * (a * np.cos(w * t) + b * np.sin(w * t)) + mean + slope * t - z

    turns = np.flatnonzero(np.diff(np.sign(z - z.mean())))
    w = np.pi / np.diff(t[turns]).mean()
    p = least_squares(missed, [np.ptp(z) / 2, 0.0, w, 0.05 * w, z.mean(), 0.0], x_scale="jac").x
    return float(p[2] / (2.0 * np.pi)), float(p[3] / np.hypot(p[2], p[3]))


@dataclass(frozen=True)
class Foretold:
    """A number of the 52 g run with the band of the fit's total error bars."""

    what: str
    value: float
    band: float
    measured: float

    def __str__(self) -> str:
        off = 100.0 * (self.value / self.measured - 1.0)
        bands = abs(self.value - self.measured) / self.band
        return (
            f"{self.what}: {self.value:.4g} +- {self.band:.2g}, measured {self.measured:.4g} "
            f"({off:+.1f} %, {bands:.1f} bands)"
        )


def foretold(fit: pl.Fit) -> list[Foretold]:
    """Frequency and drop with 52 g hung, of a fit that never saw them."""
    labels = material_labels(fit)
    at = [fit.labels.index(x) for x in labels]
    values = np.array([fit.values[x] for x in labels])
    total = np.array([fit.total_sigma[x] for x in labels])
    C = fit.correlation[np.ix_(at, at)] * np.outer(total, total)
    heavy = beam(HUNG)
    numbers: list[tuple[str, Callable[[np.ndarray], float], float]] = [
        ("frequency [Hz]", lambda v: ringing(found(heavy, v))[0], 4.33),
        ("drop [mm]", lambda v: float(drop(found(heavy, v))[0]), 17.16),
    ]
    out = []
    for what, told, measured in numbers:
        here = told(values)
        h = 0.02 * values
        slope = np.array([(told(values + d) - here) / d.sum() for d in np.diag(h)])
        out.append(Foretold(what, here, float(np.sqrt(slope @ C @ slope)), measured))
    return out
