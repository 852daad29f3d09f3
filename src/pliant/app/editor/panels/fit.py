"""Fit: recovered values with their error bars, a slider for each, and the residual they leave."""

import math
from typing import Any

from pliant.app.editor.context import Context
from pliant.app.editor.observed import ObservedPoints
from pliant.app.editor.opening import FitFound

BAR = 3.0
"""Standard deviations to each side of the slider's middle mark."""


class FitPanel:
    """Moving a slider simulates again with the new value; on_change asks for that."""

    def __init__(self, context: Context, observed: ObservedPoints, found: FitFound):
        self.context, self.observed, self.found = context, observed, found
        gui = context.gui
        self.table = gui.add_markdown(_table(found))
        self.sliders: dict[str, Any] = {}
        for label, row in found.rows.items():
            value, sigma = float(row["value"] or 0.0), float(row["sigma"] or 0.0)
            width = max(4.0 * sigma, 0.2 * abs(value), 1e-6)
            step = 10.0 ** math.floor(math.log10(width / 200.0))
            marks = tuple(
                (value + k * sigma, text)
                for k, text in ((-BAR, "-3σ"), (0.0, "fit"), (BAR, "+3σ"))
                if sigma > 0.02 * width or k == 0.0
            )
            self.sliders[label] = gui.add_slider(
                label, value - width, value + width, step, value, marks=marks,
                hint=f"{value:.5g} ± {sigma:.2g}",
            )  # fmt: skip
            context.on_change(self.sliders[label], lambda _: self._changed())
        self.back = gui.add_button("Back to the fitted values", icon="arrow-back-up")
        self.residual = gui.add_markdown("")
        self.advice = gui.add_markdown("\n".join(f"- {line}" for line in found.advice))
        context.on_click(self.back, lambda _: self._reset())
        self.restart: Any = lambda: None

    def refresh(self) -> None:
        """Nothing depends on the session but the residual, which `show` draws."""

    def show(self) -> None:
        """The residual of the frame that is shown."""
        if self.observed.rms is not None:
            self.residual.content = (
                f"Distance of the observed points: **{1e3 * self.observed.rms:.3g} mm** rms; "
                f"red is {1e3 * self.observed.top:.3g} mm or more."
            )

    def _changed(self) -> None:
        labelled = {label: float(s.value) for label, s in self.sliders.items()}
        self.context.session.take(self.found.scene_at(labelled))
        self.restart()

    def _reset(self) -> None:
        for label, row in self.found.rows.items():
            self.sliders[label].value = float(row["value"] or 0.0)
        self._changed()


def _table(found: FitFound) -> str:
    lines = ["| value | recovered | start | truth |", "|---|---|---|---|"]
    for label, row in found.rows.items():
        cells = [f"{v:.5g}" if v is not None else "" for v in (row.get("start"), row.get("truth"))]
        sigma = f" ± {row['sigma']:.2g}" if row.get("sigma") is not None else ""
        lines.append(f"| {label} | **{row['value']:.5g}**{sigma} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)
