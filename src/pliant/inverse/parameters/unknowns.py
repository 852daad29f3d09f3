"""All unknowns of a fit as one vector with bounds and priors.

What may be unknown is what the scene says (`scene.blocks`, for bodies dynamics.scene_blocks), and
what is not known of a recording (`recording_blocks`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import Block, Model, Parameters
from pliant.inverse.parameters.charts import CHARTS, Scaled
from pliant.inverse.parameters.priors import Prior
from pliant.inverse.parameters.recording_blocks import RecordingBlock, recording_block
from pliant.inverse.parameters.unknown import Unknown
from pliant.observe.calibration import Calibration


def find_block(name: str, scene: Any) -> Block:
    """What a name stands for, in the scene or in a recording of it."""
    return recording_block(name) or scene.block(name)


def make_unknown(name: str, start, scene: Any) -> Unknown:
    """An unknown by its name and start value."""
    block = find_block(name, scene)
    value = np.atleast_1d(np.asarray(start, float))
    if not np.isfinite(value).all():
        raise BadInput(f"The start of {name} must be finite.")
    labels = block.labels(scene, len(value))
    chart = CHARTS.get(block.chart)
    if chart is None:
        raise BadInput(f"{name}: there is no chart '{block.chart}'; known: {', '.join(CHARTS)}.")
    value = value if chart.angles else value[: len(labels)]
    if chart is Scaled:
        scale = block.scales(scene, len(value))
        return Unknown(block, Scaled(name, value, len(labels), scale), labels)
    return Unknown(block, chart(name, value, len(labels)), labels)


@dataclass(frozen=True)
class UnknownSet:
    """All unknowns of a fit, as one vector q.

    priors and bounds: by label, on the values in the units of the table.
    """

    members: tuple[Unknown, ...]
    priors: Mapping[str, Prior] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self):
        names = {m.name for m in self.members}
        for m in self.members:
            for other in names.intersection(m.block.excludes):
                raise BadInput(
                    f"'{m.name}' and '{other}' are both unknown, but say the same in two ways: "
                    "leave one out."
                )
        for kind, given in (("prior", self.priors), ("bound", self.bounds)):
            for label in given:
                if label not in self.labels:
                    raise BadInput(
                        f"There is a {kind} on '{label}', which is not unknown here; "
                        f"unknown are {', '.join(self.labels[:12])}."
                    )
        lower, upper = self.limits()
        start = self.start()
        outside = np.flatnonzero((start < lower) | (start > upper) | (lower >= upper))
        if len(outside):
            label = self.labels[outside[0]]
            raise BadInput(
                f"The bounds of {label}, {tuple(self.bounds[label])}, must enclose its start."
            )

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest q, infinite where there is no bound."""
        lower, upper = [], []
        for m in self.members:
            for i, label in enumerate(m.labels):
                ends = [-np.inf, np.inf]
                if label in self.bounds:
                    if m.chart.angles:
                        raise BadInput(f"{label}: a direction cannot be bounded; give a prior.")
                    for side, value in enumerate(self.bounds[label]):
                        if np.isfinite(value):
                            at = np.array(m.start, float)
                            at[i] = value
                            ends[side] = float(m.chart.coordinates(at)[i])
                lower.append(ends[0])
                upper.append(ends[1])
        return np.array(lower), np.array(upper)

    def within(self, q: np.ndarray) -> np.ndarray:
        """The nearest q that keeps to the bounds."""
        return np.clip(q, *self.limits())

    def held(self, q: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(p,): whether a bound keeps a component from falling with the cost."""
        lower, upper = self.limits()
        return ((q <= lower) & (gradient > 0.0)) | ((q >= upper) & (gradient < 0.0))

    def named(self, numbers: np.ndarray) -> dict[str, float]:
        """One number per component by its label."""
        return dict(zip(self.labels, numbers.tolist(), strict=True))

    def prior_terms(self, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Cost of the priors, its gradient (p,) and the diagonal of its Hessian (p,), by q."""
        g, h = np.zeros(len(q)), np.zeros(len(q))
        cost = 0.0
        if self.priors:
            values, slopes = self.values(q), self.slopes(q)
            for i, label in enumerate(self.labels):
                if label in self.priors:
                    r, by_value = self.priors[label].residual(values[i])
                    by_q = by_value * slopes[i]
                    cost += 0.5 * r * r
                    g[i], h[i] = r * by_q, by_q * by_q
        return cost, g, h

    @property
    def labels(self) -> list[str]:
        """One per component of q."""
        return [label for m in self.members for label in m.labels]

    def start(self) -> np.ndarray:
        """q of the start values."""
        return np.concatenate([m.chart.coordinates(m.start) for m in self.members])

    def split(self, q: np.ndarray) -> list[np.ndarray]:
        """The part of q that belongs to each member."""
        cuts = np.cumsum([m.size for m in self.members])[:-1]
        return np.split(q, cuts)

    def each(self, q: np.ndarray) -> Iterator[tuple[Unknown, np.ndarray]]:
        """The members, each with its part of q."""
        return zip(self.members, self.split(q), strict=True)

    def values(self, q: np.ndarray) -> np.ndarray:
        """Values, one per component."""
        return np.concatenate([m.chart.value(p) for m, p in self.each(q)])

    def slopes(self, q: np.ndarray) -> np.ndarray:
        """d value / d q, one per component, for error bars."""
        return np.concatenate([m.chart.slope(p) for m, p in self.each(q)])

    def sizes(self, q: np.ndarray, scene: Any, duration: float) -> np.ndarray:
        """What the error bar of each component is judged by."""
        return np.concatenate([m.size_of(p, scene, duration) for m, p in self.each(q)])

    def apply(self, scene: Any, q: np.ndarray) -> Any:
        """The scene with all unknowns set."""
        for m, p in self.each(q):
            scene = m.apply(scene, p)
        return scene

    def calibration(self, q: np.ndarray) -> Calibration:
        """What a recording is corrected by."""
        out = Calibration()
        for m, p in self.each(q):
            if isinstance(m.block, RecordingBlock):
                out = m.block.correct(out, m.chart.setting(p))
        return out

    def recording_members(self, q: np.ndarray) -> list[Unknown]:
        """Those of the recording, starting where they are at q."""
        return [
            replace(m, chart=replace(m.chart, start=m.chart.value(own)))
            for m, own in self.each(q)
            if isinstance(m.block, RecordingBlock)
        ]

    @property
    def of_recording(self) -> list[str]:
        """Names of those that no motion depends on."""
        return [m.name for m in self.members if isinstance(m.block, RecordingBlock)]

    @property
    def moves(self) -> np.ndarray:
        """(p,): whether the motion depends on a component of q."""
        own = [np.full(m.size, not isinstance(m.block, RecordingBlock)) for m in self.members]
        return np.concatenate(own)

    def directions(self, model: Model, q: np.ndarray) -> list[Parameters]:
        """One direction of the parameters per component."""
        return [m.along(model, p, e) for m, p in self.each(q) for e in np.eye(m.size)]

    def along(self, model: Model, q: np.ndarray, dq: np.ndarray) -> Parameters:
        """The direction of a change dq of all components."""
        total = Parameters()
        for (m, p), d in zip(self.each(q), self.split(dq), strict=True):
            total.plus(1.0, m.along(model, p, d))
        return total

    def pull(self, model: Model, q: np.ndarray, dual: Parameters) -> np.ndarray:
        """Gradient by q."""
        return np.concatenate([m.pull(model, p, dual) for m, p in self.each(q)])
