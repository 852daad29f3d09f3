"""Reconstruct: recover values of the scene from a recording, and watch it converge."""

from dataclasses import replace
from typing import Any

import numpy as np

from pliant.app.editor.child import Child
from pliant.app.editor.context import Context
from pliant.app.editor.fit_worker import fit
from pliant.app.editor.observed import ObservedPoints
from pliant.app.fitted.fit_values import AWAY, scene_values
from pliant.core.errors import BadInput
from pliant.inverse.fitting.fit import Step
from pliant.observe.files import RECORD

FILM = "film this scene (a rehearsal)"
UNKNOWNS = {
    "youngs_modulus": "Young's modulus", "poisson_ratio": "Poisson's ratio", "density": "Density",
    "mass_damping": "Mass damping", "stiffness_damping": "Stiffness damping",
}  # fmt: skip
DEPTH = 3
"""Folders below the served one in which recordings are looked for."""


class ReconstructPanel:
    """Fits run in a process of their own."""

    def __init__(self, context: Context, observed: ObservedPoints, machine: tuple[str, int | None]):
        import viser.uplot as up

        self.context, self.observed, self._machine = context, observed, machine
        gui = context.gui
        self.source = gui.add_dropdown(
            "Recording", (FILM,), initial_value=FILM,
            hint="Folders with observations.json below the served folder; or the scene itself is "
            "filmed, and the fit starts ten percent off.",
        )  # fmt: skip
        self.unknowns = {
            name: gui.add_checkbox(label, name in ("youngs_modulus", "poisson_ratio"))
            for name, label in UNKNOWNS.items()
        }
        self.start = gui.add_button(
            "Start the fit", icon="player-play", hint="From the values of the Material panel."
        )
        self.stop_button = gui.add_button("Stop the fit", icon="player-stop", visible=False)
        self.progress = gui.add_progress_bar(0.0, visible=False)
        self.plot = gui.add_uplot(
            (np.array([0.0, 1.0]), np.zeros(2)),
            (up.Series(label="step"), up.Series(label="rms", stroke="#2d6ec4", width=2)),
            title="residual [mm] over iterations", scales={"x": up.Scale(time=False)},
            legend=up.Legend(show=False), height=150, visible=False,
        )  # fmt: skip
        self.table = gui.add_markdown("")
        self.use = gui.add_button("Use these values", icon="check", visible=False)
        self._child: Child | None = None
        self._steps: list[Step] = []
        self._found: dict[str, Any] = {}
        context.on_click(self.start, lambda _: self._start())
        context.on_click(self.stop_button, lambda _: self._stopped())
        context.on_click(self.use, lambda _: self._use())

    @property
    def pid(self) -> int | None:
        """The fit's process number, None if none runs."""
        return self._child.pid if self._child is not None and self._child.alive else None

    def refresh(self) -> None:
        """List recordings."""
        names = (FILM, *self._recordings())
        if self.source.options != names:
            self.source.options = names

    def _recordings(self) -> list[str]:
        folder = self.context.folder
        found = []
        for depth in range(DEPTH):
            for path in folder.glob("/".join(["*"] * depth + [RECORD])):
                real = path.resolve()
                if real.is_relative_to(folder.resolve()) and not path.is_symlink():
                    found.append(str(path.parent.relative_to(folder)))
        return sorted(found)

    def _start(self) -> None:
        session = self.context.session
        if session.body.dim != 3:
            raise BadInput("Depth cameras see 3D bodies only.")
        names = [n for n, box in self.unknowns.items() if box.value]
        own = scene_values(session.scene)
        names = [n for n in names if n in own and own[n] > 0.0]
        if not names:
            raise BadInput("Tick at least one value to recover; damping must not start at zero.")
        filmed = self.source.value == FILM
        starts = {n: AWAY.get(n, lambda v: 1.1 * v)(own[n]) if filmed else own[n] for n in names}
        if filmed:
            folder = None
        elif self.source.value in self._recordings():
            folder = str((self.context.folder / self.source.value).resolve())
        else:
            raise BadInput("This recording is gone: choose another.")
        self.context.simulation.pause()
        self._steps, self._found = [], {}
        self._truth = own if filmed else {}
        child: list[Child] = []

        def receive(message: Any) -> None:
            self.context.desk.post(lambda: self._receive(child[0], message))

        self._child = Child(
            fit, session.description, replace(session.body, shape=None), folder, starts,
            *self._machine, receive=receive, name="pliant-fit",
        )  # fmt: skip
        child.append(self._child)
        self._show_running(True)
        self.table.content = "Filming the scene ..." if filmed else "Reading the recording ..."

    def stop(self) -> None:
        """End a fit that runs."""
        child, self._child = self._child, None
        if child is not None:
            child.stop()
            self._show_running(False)

    def _stopped(self) -> None:
        self.stop()
        self.context.say("The fit was stopped.")

    def _show_running(self, running: bool) -> None:
        self.start.disabled = running
        self.stop_button.visible = self.progress.visible = running
        self.use.visible = bool(self._found) and not running

    def _receive(self, child: Child, message: Any) -> None:
        if child is not self._child:
            return
        if message is None:
            self._child = None
            child.stop()
            self._show_running(False)
            return
        name, value = message
        if name == "seen":
            self.observed.load(value, self.context.session.body)
            self.table.content = f"{value.point_count:,} points; fitting ..."
        elif name == "progress":
            self.progress.value = 100.0 * value
        elif name == "step":
            self._steps.append(value)
            self._show_steps()
        elif name == "done":
            self._found = value
            self.table.content = values_table(value, self._truth)
            self.progress.value = 100.0
        elif name == "failed":
            self.table.content = ""
            self.context.complain(value)
        elif name == "notice":
            self.context.say(value)

    def _show_steps(self) -> None:
        last = self._steps[-1]
        self.progress.value = min(95.0, 20.0 + 15.0 * len(self._steps))
        rows = "  \n".join(f"{k} = {v:.5g}" for k, v in last.values.items())
        self.table.content = (
            f"iteration {last.iteration}, residual {1e3 * last.rms:.3g} mm  \n{rows}"
        )
        if len(self._steps) > 1:
            x = np.arange(len(self._steps), dtype=float)
            self.plot.visible = True
            self.plot.data = (x, np.array([1e3 * s.rms for s in self._steps]))

    def _use(self) -> None:
        keys = {k: float(v) for k, v in self._found["values"].items() if k in UNKNOWNS}
        material = replace(self.context.session.scene.material, **keys)
        self.context.session.take(replace(self.context.session.scene, material=material))
        self.context.say("The scene has the recovered values.")


def values_table(found: dict[str, Any], truth: dict[str, Any]) -> str:
    """Markdown: value ± sigma, with the truth where it is known, and the advice."""
    known = any(label in truth for label in found["labels"])
    head = "| value | recovered |" + (" truth |" if known else "")
    lines = [head, "|---|---|" + ("---|" if known else "")]
    for label in found["labels"]:
        row = f"| {label} | **{found['values'][label]:.5g}** ± {found['sigma'][label]:.2g} |"
        if known:
            row += f" {truth[label]:.5g} |" if label in truth else " |"
        lines.append(row)
    lines += ["", *(f"- {line}" for line in found["advice"])]
    return "\n".join(lines)
