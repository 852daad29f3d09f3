"""The result of a reconstruction: values, error bars, history and advice."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.shown import Shown
from pliant.inverse.fields.field_parts import Part
from pliant.inverse.fitting.registering import Registration
from pliant.inverse.joint.opinion import Opinion, opinion_rows
from pliant.observe.depth_noise import DepthNoise

MOST_TOLD = 6
"""Values in the short form of a fit."""


@dataclass(frozen=True)
class Step:
    """One iteration of a fit; stage: what it belongs to ("" for the fit proper)."""

    iteration: int
    horizon: int
    cost: float
    rms: float
    values: dict[str, float]
    stage: str = ""


@dataclass(frozen=True, repr=False)
class Fit(Shown):
    """values, sigma, start: by label; correlation: (p, p) in the order of `labels`.

    sigma is one standard deviation from the Gauss-Newton Hessian and the noise found (in the
    residuals, or as given); total_sigma holds grid, time step and model as well, each told in
    errors[cause][label]. discretisation: grid and time step together, from coarser repeats; empty
    if there were none. extrapolated: the values at spacing and time step zero, by the same repeats.
    converged: whether success may be claimed; reasons: one sentence each where not. timings [ms]:
    forward_ms and
    adjoint_ms of a step, iteration_ms of the optimiser, forward_run_ms of a plain run. parts: of a
    field that was cut into parts of one modulus each, the body at large first. registration: how
    the recording was moved onto the shape before the fit, if it was. noise_by: where a film's noise
    is not one, by camera and depth; rms is then that of weighed residuals. opinions: what each of
    several experiments says alone.
    """

    labels: list[str]
    start: dict[str, float]
    values: dict[str, float]
    sigma: dict[str, float]
    correlation: np.ndarray
    history: list[Step]
    advice: list[str]
    noise: float
    rms: float
    iterations: int
    seconds: float
    converged: bool
    covariance: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, 0)))
    timings: dict[str, float] = field(default_factory=dict)
    noise_by: DepthNoise | None = field(default=None, repr=False)
    frame_rms: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    discretisation: dict[str, float] = field(default_factory=dict)
    optimiser: str = "lm"
    parts: list[Part] = field(default_factory=list)
    total_sigma: dict[str, float] = field(default_factory=dict)
    errors: dict[str, dict[str, float]] = field(default_factory=dict)
    extrapolated: dict[str, float] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    registration: Registration | None = None
    opinions: list[Opinion] = field(default_factory=list)

    def table(self, truth: dict[str, float] | None = None) -> str:
        """A plain-text table of truth, start, value, sigma (by noise) and total sigma."""
        head = ["unknown", *(["truth"] if truth else []), "start", "value", "sigma"]
        if self.total_sigma:
            head.append("total sigma")
        rows = [head]
        for label in self.labels:
            row = [label]
            if truth:
                row.append(f"{truth[label]:.6g}" if label in truth else "")
            row += [
                f"{self.start[label]:.6g}", f"{self.values[label]:.6g}",
                f"{self.sigma[label]:.2g}",
            ]  # fmt: skip
            if self.total_sigma:
                row.append(f"{self.total_sigma.get(label, float('nan')):.2g}")
            rows.append(row)
        return "\n".join(in_columns(rows))

    def opinion_table(self) -> str:
        """What each experiment says alone, beside the joint value, each with its total sigma."""
        return "\n".join(in_columns(opinion_rows(self.labels, self.values, self.total_sigma,
                                                  self.opinions)))  # fmt: skip

    def body_sigma(self, label: str) -> float:
        """total_sigma without the part of a density that was held: what counts for the same body in
        another recording, whose density is as wrong.
        """
        total = self.total_sigma.get(label, self.sigma[label])
        held = self.errors.get("density", {}).get(label, 0.0)
        return math.sqrt(max(total**2 - held**2, 0.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON holds them: numbers that are not finite are None."""
        unknowns = {
            label: {
                "start": self.start[label],
                "value": self.values[label],
                "sigma": self.sigma[label],
                "total_sigma": self.total_sigma.get(label),
                "extrapolated": self.extrapolated.get(label),
                "errors": {cause: by.get(label) for cause, by in self.errors.items()},
            }
            for label in self.labels
        }
        plain = ("noise", "rms", "iterations", "seconds", "converged", "optimiser")
        return _finite(
            {
                "unknowns": unknowns,
                "correlation": self.correlation.tolist(),
                "covariance": self.covariance.tolist(),
                "frame_rms": self.frame_rms.tolist(),
                "history": [asdict(step) for step in self.history],
                "advice": list(self.advice),
                "reasons": list(self.reasons),
                "timings": dict(self.timings),
                **{name: getattr(self, name) for name in plain},
            }
        )

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: a row for each unknown with start, value, sigma and total_sigma."""
        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise BadInput(
                "fit.to_dataframe() needs pandas (pip install pandas); fit.to_dict() has the same "
                "numbers without it."
            ) from error
        columns = ("start", "value", "sigma", "total_sigma")
        rows = self.to_dict()["unknowns"]
        table = {c: [rows[label][c] for label in self.labels] for c in columns}
        return pandas.DataFrame(table, index=pandas.Index(self.labels, name="unknown"))

    def __repr__(self) -> str:
        error = self.total_sigma or self.sigma
        found = [f"{n} = {self.values[n]:.5g} ± {error[n]:.2g}" for n in self.labels[:MOST_TOLD]]
        more = len(self.labels) - len(found)
        found += [f"and {more} more"] if more else []
        state = "converged" if self.converged else "NOT converged"
        return f"<Fit, {state}: {', '.join(found)}>"

    def __str__(self) -> str:
        text = self.table()
        if self.opinions:
            text += "\n\n" + self.opinion_table() + "\n"
        if self.reasons:
            text += "\n" + "\n".join(f"- NOT A SUCCESS: {line}" for line in self.reasons)
        if self.advice:
            text += "\n" + "\n".join(f"- {line}" for line in self.advice)
        return text


def in_columns(rows: list[list[str]]) -> list[str]:
    """Lines of a table, the first column to the left."""
    widths = [max(len(r[c]) for r in rows) for c in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _finite(value: Any) -> Any:
    """A copy with None for numbers that are not finite, and Python's own numbers."""
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
