"""How well a fit foretells a recording that it never saw: the only proof that counts.

The material m of the fit, with the covariance C of its total error bars, is put into another scene.
With r the residuals there, J their tangents by m and s the noise, the fit foretells each residual
to be zero within

    sqrt(s^2 + b^2),    b^2 = diag(J C J^T).

What is not known of the new recording itself (a clock, a starting motion) may be fitted to it with
the material held; J is then what is left of it beside their tangents N, J - N (N^T N)^-1 N^T J. The
recording's own opinion of the material is one Gauss-Newton step away, and compared with the fit's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pliant.dynamics.model import World
from pliant.inverse.fitting.fit import Fit
from pliant.inverse.fitting.fit_log import rescaled
from pliant.inverse.fitting.known_material import KnownMaterial
from pliant.inverse.fitting.reconstruct import reconstruct
from pliant.inverse.fitting.registering import register
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.track_cost import TrackMeasure, with_places
from pliant.inverse.motion.evaluation import Evaluation, rms
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.priors import Prior
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.observations import Observations

COVERED = 2.0
"""Times the expected size that residuals may have."""

CHANCE = 0.0027
"""Probability below which the recording's own opinion is another one."""

UNSEEN = 1e-12
"""Share of the best seen direction's information below which one is not seen at all."""


@dataclass(frozen=True)
class Courses:
    """Tracked points over time: seen (corrected), foretold and band, (frames, points, dim) [m]."""

    names: tuple[str, ...]
    seen: np.ndarray
    foretold: np.ndarray
    band: np.ndarray


@dataclass(frozen=True)
class Prediction:
    """values, sigma: of the material that was held, by label. rms, noise, band [m]: of residuals,
    of the recording, and of what the error bars allow; expected: of the last two together.

    within: share of the residuals within two of their own standard deviations, noise and band.
    covered: whether the residuals are no larger than twice what is expected. alone: value and sigma
    that this recording alone would give each; apart: how far that is from the fit, in error bars of
    the worst; agrees: whether that is chance. own: fitted values of what was not known of the
    recording. times, frame_rms, frame_band: by frame.
    """

    values: dict[str, float]
    sigma: dict[str, float]
    rms: float
    noise: float
    band: float
    within: float
    covered: bool
    alone: dict[str, tuple[float, float]]
    apart: float
    agrees: bool
    own: dict[str, float] = field(default_factory=dict)
    times: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    frame_rms: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    frame_band: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    advice: list[str] = field(default_factory=list)
    courses: Courses | None = field(default=None, repr=False)

    @property
    def expected(self) -> float:
        """Root mean square [m] that residuals should have: noise and band."""
        return float(np.hypot(self.noise, self.band))

    def lines(self) -> list[str]:
        """The prediction in words."""
        ends = "lie" if self.covered else "do NOT lie"
        out = [
            f"residuals {self.rms:.3g} m, {self.rms / self.noise:.2g} times the noise "
            f"({self.noise:.2g} m); the error bars allow {self.band:.2g} m, together "
            f"{self.expected:.2g} m",
            f"They {ends} within what the error bars allow; {100 * self.within:.0f} % of them "
            "within two standard deviations.",
        ]
        for label, (value, sigma) in self.alone.items():
            held = f"{self.values[label]:.5g} +- {self.sigma[label]:.2g}"
            said = f"would make it {value:.5g} +- {sigma:.2g}"
            if not sigma < max(abs(value), 1e-12):
                said = "does not see it alone"
            out.append(f"{label}: {held} of the fit; this recording {said}")
        word = "as chance allows" if self.agrees else "more than chance allows"
        out.append(f"They are {self.apart:.1f} error bars apart, {word}.")
        if self.own:
            told = ", ".join(f"{n} {v:.4g}" for n, v in self.own.items() if "[" not in n)
            out += [f"fitted to this recording, the material held: {told}"] if told else []
        return out + [f"- {line}" for line in self.advice]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def predict(
    fit: Fit | KnownMaterial,
    scene: World,
    seen: Any,
    *,
    unknowns: Mapping[str, Any] | None = None,
    priors: Mapping[str, Prior] | None = None,
    cost: str = "auto",
    loss: str = "huber",
    registers: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    """Foretell `seen` of a scene with the material of a fit, and say how well that went.

    unknowns, priors: of the recording or of its start, {name: start}: fitted to it first, with the
    material held. registers: lay a depth film onto the shape, as a fit does.
    """
    known = fit if isinstance(fit, KnownMaterial) else KnownMaterial.of(fit)
    held, places = known.members(scene)
    material = UnknownSet(tuple(held))
    scene = material.apply(scene, material.start())
    free, sure = with_places(seen, unknowns or {}, priors)
    own: dict[str, float] = {}
    moved = None
    if free:
        found = reconstruct(
            scene, seen, free, priors=sure, cost=cost, loss=loss, discretisation=False,
            register=registers, progress=progress,
        )  # fmt: skip
        own, moved = found.values, found.registration
    elif registers:
        moved = register(scene, seen, material)
    if moved is not None and isinstance(seen, Observations):
        seen = moved.apply(seen)
    others = tuple(make_unknown(n, v, scene) for n, v in free.items())
    every = UnknownSet((*held, *others), {k: v for k, v in sure.items() if others})
    q = every.start()
    count = len(material.labels)
    if others:
        settled = UnknownSet(others)
        q[count:] = _coordinates(settled, own)
    problem = Problem(scene, seen, every, cost=cost, progress=progress)
    noise = problem.noise or known.noise
    scale = Loss(max(noise, 1e-9 * problem.spacing), loss)
    e = problem.evaluate(q, Loss(max(problem.spacing, scale.sigma), loss))
    e = rescaled(problem, e, scale, problem.last_step)
    slopes = every.slopes(q)[:count]
    C = known.covariance[np.ix_(places, places)] / np.outer(slopes, slopes)
    J = _beside(e, count)
    bands = {k: np.sqrt(np.maximum(np.einsum("mi,ij,mj->m", j, C, j), 0.0)) for k, j in J.items()}
    alone, apart, agrees = _opinion(e, J, C, scale)
    labels, values = material.labels, every.values(q)[:count]
    sigma = np.abs(slopes) * np.sqrt(np.diag(C))
    said = material.values(q[:count] + np.clip(alone[0], -3.0, 3.0))
    spreads = np.abs(slopes) * alone[1]
    band = rms(np.concatenate([bands[k][f.usable] for k, f in e.frames.items()]))
    inside = np.concatenate([
        np.abs(f.r[f.usable]) < 2.0 * np.hypot(noise, bands[k][f.usable])
        for k, f in e.frames.items()
    ])  # fmt: skip
    times = dict(problem.measure.times)
    size = _robust_size(e, noise)
    return Prediction(
        material.named(values), material.named(sigma),
        rms=e.rms, noise=noise, band=band, within=float(inside.mean()),
        covered=bool(size <= COVERED * np.hypot(noise, band)),
        alone={
            x: (float(v), float(s)) for x, v, s in zip(labels, said, spreads, strict=True)
        },
        apart=apart, agrees=agrees, own=own, times=np.array([times[k] for k in e.frames]),
        frame_rms=np.array([rms(f.r[f.usable]) for f in e.frames.values()]),
        frame_band=np.array([rms(bands[k][f.usable]) for k, f in e.frames.items()]),
        advice=_advice(known, problem, moved), courses=_courses(problem, e, bands),
    )  # fmt: skip


def _coordinates(unknowns: UnknownSet, values: Mapping[str, float]) -> np.ndarray:
    """q of values by label, as a fit of the same unknowns told them."""
    out = []
    for m in unknowns.members:
        own = np.array([values[x] for x in m.labels])
        out.append(own if m.chart.angles else m.chart.coordinates(own))
    return np.concatenate(out)


def _beside(e: Evaluation, count: int) -> dict[int, np.ndarray]:
    """Tangents by the material, without what the other unknowns do as well."""
    width = e.q.size - count
    if not width:
        return {k: f.J for k, f in e.frames.items()}
    H = e.model[2]
    share = np.linalg.pinv(H[count:, count:], hermitian=True) @ H[count:, :count]
    return {k: f.J[:, :count] - f.J[:, count:] @ share for k, f in e.frames.items()}


def _opinion(
    e: Evaluation, J: Mapping[int, np.ndarray], C: np.ndarray, loss: Loss
) -> tuple[tuple[np.ndarray, np.ndarray], float, bool]:
    """The recording's own change of the material and its sigma, (p,) each, in free coordinates; how
    far that is from none, in error bars; whether that is chance.
    """
    from scipy.stats import chi2

    p = len(C)
    H, g = np.zeros((p, p)), np.zeros(p)
    for k, f in e.frames.items():
        weight = np.where(f.usable, loss(f.r)[1], 0.0)
        H += J[k].T @ (weight[:, None] * J[k])
        g += J[k].T @ (weight * f.r)
    values, vectors = np.linalg.eigh(H)
    floor = max(UNSEEN * values.max(initial=0.0), 1e-9)
    inverse = (vectors / np.maximum(values, floor)) @ vectors.T
    step = -inverse @ g
    total = C + inverse
    size = float(step @ np.linalg.solve(total, step))
    bars = np.abs(step) / np.sqrt(np.diag(total))
    sigma = np.sqrt(np.diag(inverse))
    return (step, sigma), float(bars.max()), bool(chi2.sf(size, p) > CHANCE)


def _advice(known: KnownMaterial, problem: Problem, moved: Any) -> list[str]:
    out = [] if moved is None else [moved.told()]
    if not known.sure:
        out.append("The fit itself is no success: its error bars, and so the band, mean little.")
    if not problem.noise:
        out.append(
            "The recording does not state its noise: that of the fit's own recording is taken."
        )
    return out


def _courses(problem: Problem, e: Evaluation, bands: Mapping[int, np.ndarray]) -> Courses | None:
    """Tracked points as they were seen and foretold; of other recordings none."""
    m = problem.measure
    if not isinstance(m, TrackMeasure):
        return None
    calibration = problem.unknowns.calibration(e.q)
    rows = [m.courses(k, f.r, bands[k], calibration) for k, f in e.frames.items()]
    seen, foretold, band = (np.stack(x) for x in zip(*rows, strict=True))
    return Courses(m.names, seen, foretold, band)


def _robust_size(e: Evaluation, noise: float) -> float:
    """Root mean square [m] without the one percent that is farthest off."""
    r = np.abs(e.usable)
    return rms(r[r <= max(np.quantile(r, 0.99), 3.0 * noise)]) if len(r) else 0.0
