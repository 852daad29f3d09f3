"""Solver: integrator, time step, accuracy, and what each phase of a step takes."""

from typing import Any

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.history import ENERGIES, Frame
from pliant.dynamics.constitution import DEFAULT, models
from pliant.dynamics.integrators import INTEGRATORS
from pliant.dynamics.model_numbers import shown_numbers

PLOTTED = 400
"""Points of a plot at most; longer runs are thinned."""

PHASE_NAMES = {
    "assembly_ms": "assembly", "setup_ms": "preconditioner", "solve_ms": "solve",
    "step_ms": "whole step",
}  # fmt: skip


class SolverPanel:
    """Changes take effect at the next step."""

    def __init__(self, context: Context):
        import viser.uplot as up

        self.context = context
        gui = context.gui
        self.integrator = gui.add_dropdown(
            "Integrator", tuple(INTEGRATORS), initial_value="GeneralisedAlpha",
            hint="GeneralisedAlpha and HHT damp high frequencies, Newmark2 none; "
            "ImplicitEuler damps a lot; CentralDifferences is explicit and needs tiny steps.",
        )  # fmt: skip
        self.dt = gui.add_number(
            "Time step [s]", 0.02, min=1e-6, max=1.0, step=1e-4, hint="Simulated time a step."
        )
        self.theta = gui.add_slider("theta", 0.5, 1.0, 0.01, 0.6, hint="1/2: none, 1: most damping")
        self.radius = gui.add_slider(
            "spectral radius", 0.0, 1.0, 0.01, 0.8, hint="kept of the highest frequencies a step"
        )
        self.alpha = gui.add_slider("alpha", -0.33, 0.0, 0.01, -0.1, hint="0: none, -1/3: most")
        self.model = gui.add_dropdown(
            "Deformation", tuple(models()), initial_value=DEFAULT,
            hint=". ".join(f"{tag}: {kind.words}" for tag, kind in models().items()),
        )  # fmt: skip
        self.own = {
            (tag, name): gui.add_slider(
                name, about.low, about.high, 0.01, float(default), hint=about.words
            )
            for tag, kind in models().items()
            for name, (about, default) in shown_numbers(kind.numbers).items()
        }
        """Sliders of the numbers that models have of their own, by model and name."""
        self.speed = gui.add_slider(
            "Speed limit", 0.1, 4.0, 0.1, 1.0, hint="Simulated seconds a second, at most."
        )
        self.accuracy = gui.add_dropdown(
            "Accuracy", ("fast (1e-5)", "the scene's own"), initial_value="fast (1e-5)",
            hint="Relative residual of the linear solves while playing.",
        )  # fmt: skip
        self.timings = gui.add_markdown("")
        options: dict[str, Any] = {
            "scales": {"x": up.Scale(time=False)}, "height": 150,
            "legend": up.Legend(show=True),
        }  # fmt: skip
        axis = np.array([0.0, 1.0])

        def line(label: str, color: str) -> Any:
            return up.Series(label=label, stroke=color, width=2)

        self.tip_plot = gui.add_uplot(
            (axis, 0 * axis), (up.Series(label="t [s]"), line("tip [m]", "#2d6ec4")),
            title="tip displacement [m]", **options,
        )  # fmt: skip
        self.energy_plot = gui.add_uplot(
            (axis, *(0 * axis for _ in ENERGIES)),
            (up.Series(label="t [s]"), line("kinetic", "#c4552d"), line("elastic", "#2d9c6e"),
             line("gravity", "#888888"), line("contact", "#2d6ec4"), line("dissipated", "#8c5fc4")),
            title="energy [J]", **options,
        )  # fmt: skip
        self.time_plot = gui.add_uplot(
            (axis, 0 * axis, 0 * axis, 0 * axis),
            (up.Series(label="t [s]"), line("assembly", "#8c5fc4"), line("solve", "#c4552d"),
             line("step", "#808890")),
            title="time of a step [ms]", **options,
        )  # fmt: skip
        for handle in (self.integrator, self.dt, self.theta, self.alpha, self.radius):
            context.on_change(handle, lambda _: self._set_integrator())
        context.on_change(self.model, self._set_model)
        for handle in self.own.values():
            context.on_change(handle, lambda _: self._set_numbers())
        context.on_change(self.speed, context.simulation.set_speed)
        context.on_change(self.accuracy, self._set_accuracy)

    def _set_model(self, tag: str) -> None:
        """A law is a model of its own: another one takes its place."""
        self.context.session.change(
            model=tag, numbers=None, **({} if tag == DEFAULT else {"law": None})
        )

    def _set_numbers(self) -> None:
        description = self.context.session.description
        numbers = dict(description.get("numbers") or {})
        for (tag, name), handle in self.own.items():
            if tag == description["model"]:
                numbers[name] = float(handle.value)
        self.context.session.change(numbers=numbers)

    def refresh(self) -> None:
        """Show the scene's integrator and the numbers of its model."""
        table = self.context.session.description["integrator"]
        self.integrator.value = table["type"]
        self.dt.value = float(table["dt"])
        self.theta.visible = table["type"] == "Newmark1"
        self.alpha.visible = table["type"] == "HHT"
        self.radius.visible = table["type"] == "GeneralisedAlpha"
        if "spectral_radius" in table:
            self.radius.value = float(table["spectral_radius"])
        if "theta" in table:
            self.theta.value = float(table["theta"])
        if "alpha" in table:
            self.alpha.value = float(table["alpha"])
        model = self.context.session.description["model"]
        if model in self.model.options:
            self.model.value = model
        given = self.context.session.scene.numbers
        for (tag, name), handle in self.own.items():
            handle.visible = tag == model
            if handle.visible:
                handle.value = float(getattr(given, name))

    def show(self, frame: Frame | None) -> None:
        """The timings of a frame, as seed 002's figure 5.16 has them."""
        if frame is None or "step_ms" not in frame.numbers:
            self.timings.content = "| phase | time |\n|---|---|\n| no step yet | |"
            return
        rows = [
            f"| {label} | {frame.numbers[key]:.1f} ms |"
            for key, label in PHASE_NAMES.items()
            if key in frame.numbers
        ]
        iterations = f"| solver iterations | {frame.numbers.get('iterations', 0):.0f} |"
        parts = int(frame.numbers.get("parts", 1))
        cut = [f"| cut into parts, as Newton failed | {parts} |"] if parts > 1 else []
        lines = ["| phase | time |", "|---|---|", *rows, iterations, *cut]
        self.timings.content = "\n".join(lines)

    def plot(self) -> None:
        """Draw the run so far."""
        history = self.context.session.history
        t, tip = history.series("tip")
        if len(t) < 2:
            return
        every = max(1, len(t) // PLOTTED)
        self.tip_plot.data = (t[::every], tip[::every])
        found = {}
        for name in (*ENERGIES, "assembly_ms", "solve_ms", "step_ms"):
            times, values = history.series(name)
            if len(times) < 2:
                return
            found[name] = (times[::every], values[::every])
        x = found["kinetic"][0]
        self.energy_plot.data = (x, *(found[n][1] for n in ENERGIES))
        x = found["step_ms"][0]
        self.time_plot.data = (x, *(found[n][1] for n in ("assembly_ms", "solve_ms", "step_ms")))

    def _set_integrator(self) -> None:
        table: dict[str, Any] = {"type": self.integrator.value, "dt": float(self.dt.value)}
        if table["type"] == "Newmark1":
            table["theta"] = float(self.theta.value)
        if table["type"] == "HHT":
            table["alpha"] = float(self.alpha.value)
        if table["type"] == "GeneralisedAlpha":
            table["spectral_radius"] = float(self.radius.value)
        self.context.session.change(integrator=table)

    def _set_accuracy(self, value: str) -> None:
        self.context.simulation.set_tolerance(1e-5 if value.startswith("fast") else None)
