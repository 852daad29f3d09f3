"""The result of a reconstruction: values, error bars, history and advice."""

from dataclasses import dataclass, field

import numpy as np

from pliant.inverse.fields.field_parts import Part
from pliant.inverse.fitting.registering import Registration
from pliant.inverse.joint.opinion import Opinion, opinion_rows


@dataclass(frozen=True)
class Step:
    """One iteration of a fit; stage: what it belongs to ("" for the fit proper)."""

    iteration: int
    horizon: int
    cost: float
    rms: float
    values: dict[str, float]
    stage: str = ""


@dataclass(frozen=True)
class Fit:
    """values, sigma, start: by label; correlation: (p, p) in the order of `labels`.

    sigma is one standard deviation from the Gauss-Newton Hessian and the noise found (in the
    residuals, or as given); total_sigma holds grid, time step and model as well, each told in
    errors[cause][label]. discretisation: grid and time step together, from coarser repeats; empty
    if there were none. extrapolated: the values at spacing and time step zero, by the same repeats.
    converged: whether success may be claimed; reasons: one sentence each where not. timings [ms]:
    forward_ms and
    adjoint_ms of a step, iteration_ms of the optimiser, forward_run_ms of a plain run. parts: of a
    field that was cut into parts of one modulus each, the body at large first. registration: how
    the recording was moved onto the shape before the fit, if it was. opinions: what each of several
    experiments says alone.
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
        return "\n".join(_in_columns(rows))

    def opinion_table(self) -> str:
        """What each experiment says alone, beside the joint value, each with its total sigma."""
        return "\n".join(_in_columns(opinion_rows(self.labels, self.values, self.total_sigma,
                                                  self.opinions)))  # fmt: skip

    def __str__(self) -> str:
        text = self.table()
        if self.opinions:
            text += "\n\n" + self.opinion_table() + "\n"
        if self.reasons:
            text += "\n" + "\n".join(f"- NOT A SUCCESS: {line}" for line in self.reasons)
        if self.advice:
            text += "\n" + "\n".join(f"- {line}" for line in self.advice)
        return text


def _in_columns(rows: list[list[str]]) -> list[str]:
    """Lines of a table, the first column to the left."""
    widths = [max(len(r[c]) for r in rows) for c in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
