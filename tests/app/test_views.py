"""What records show of themselves: figures, tables, short forms, progress."""

import io
import json
import subprocess
import sys
import types

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.fitting.fit import Fit, Step


@pytest.fixture(scope="module")
def scene():
    return pl.Scene(
        pl.GridBody(pl.shapes.box(center=(0.5, 0, 0), size=(1.0, 0.25, 0.25)), 0.25),
        pl.Material(3000.0, 0.3, density=2.0),
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=1e-3))],
        integrator=pl.GeneralisedAlpha(dt=0.02),
        source={"title": "a <bar>"},
    )


@pytest.fixture(scope="module")
def run(scene):
    return pl.simulate(scene, 5)


def fit(labels=("youngs_modulus", "poisson_ratio")):
    values = {label: 10.0 + k for k, label in enumerate(labels)}
    half = {label: 0.5 for label in labels}
    steps = [Step(k, 5, 1.0 / (k + 1), 0.1 / (k + 1), values) for k in range(3)]
    return Fit(
        list(labels), half, values, half, np.eye(len(labels)), steps, ["mind the <gap>"],
        noise=0.01, rms=0.03, iterations=2, seconds=1.5, converged=True,
        total_sigma={label: 1.25 for label in labels},
        errors={"grid": {label: float("nan") for label in labels}},
    )  # fmt: skip


def png_of(figure):
    from matplotlib.figure import Figure

    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    stream = io.BytesIO()
    figure.savefig(stream)
    return stream.getvalue()


def test_a_run_s_figure_has_its_energies(run):
    figure = run.plot(frames=2)
    energies, moved = figure.axes[2:]
    drawn = {line.get_label(): line.get_ydata() for line in energies.get_lines()}
    assert np.array_equal(drawn["elastic"], run.energies.elastic)
    assert np.abs(np.array([line.get_ydata() for line in moved.get_lines()])).max() == (
        pytest.approx(np.abs(run.displacements).max())
    )
    assert png_of(figure)
    assert len(run.plot(frames=0).axes) == 2


def test_figures_of_scene_modes_and_fit(scene):
    modes = pl.modes(scene, 4)
    titles = [axes.get_title() for axes in modes.plot(count=3).axes]
    assert titles == [f"{k + 1}: {modes.frequencies[k]:.4g} Hz" for k in range(3)]
    assert png_of(scene.plot())
    figure = fit().plot(truth={"youngs_modulus": 10.5})
    assert len(figure.axes) == 3
    assert png_of(figure)


def test_nothing_is_shown_and_pyplot_stays_out():
    code = (
        "import pliant as pl, sys\n"
        "body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(1, 1, 1)), 0.5)\n"
        "pl.simulate(pl.Scene(body), 1).plot(frames=0)\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_short_forms(scene, run):
    assert repr(scene) == "<Scene 'a <bar>': 16 cells, corotated, 1 held, dt = 0.02 s>"
    assert repr(run) == (
        f"<Trajectory: 5 steps to t = 0.1 s, 45 nodes, largest displacement {run.largest:.4g} m>"
    )
    assert repr(fit()) == ("<Fit, converged: youngs_modulus = 10 ± 1.2, poisson_ratio = 11 ± 1.2>")
    many = repr(fit([f"youngs_modulus[{k}]" for k in range(3000)]))
    assert many.endswith("and 2994 more>")
    assert len(many) < 400
    assert repr(pl.modes(scene, 2)).startswith("<Modes: 2, from ")


def test_html_escapes_what_it_tells(scene, run):
    for record in (scene, run, fit(), pl.modes(scene, 2)):
        text = record._repr_html_()
        assert text.startswith("<div>")
        assert text.count("<tr>") >= 2
        assert "<bar>" not in text
        assert "<gap>" not in text
    assert "a &lt;bar&gt;" in scene._repr_html_()
    assert "mind the &lt;gap&gt;" in fit()._repr_html_()


def test_a_fit_as_plain_values():
    found = json.loads(json.dumps(fit().to_dict(), allow_nan=False))
    assert found["unknowns"]["poisson_ratio"]["value"] == 11.0
    assert found["unknowns"]["poisson_ratio"]["errors"] == {"grid": None}
    assert found["history"][2]["rms"] == pytest.approx(0.1 / 3)
    assert found["correlation"] == [[1.0, 0.0], [0.0, 1.0]]


def test_a_fit_as_a_table(monkeypatch):
    """By pandas where it is; else one sentence says what to do."""
    made = {}
    stub = types.SimpleNamespace(
        DataFrame=lambda table, index: made.update(table=table, index=index) or "frame",
        Index=lambda labels, name: list(labels),
    )
    monkeypatch.setitem(sys.modules, "pandas", stub)
    assert fit().to_dataframe() == "frame"
    assert made["index"] == ["youngs_modulus", "poisson_ratio"]
    assert made["table"]["total_sigma"] == [1.25, 1.25]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(pl.BadInput, match="needs pandas .pip install pandas"):
        fit().to_dataframe()


def test_progress_in_a_pipe(scene, capsys, monkeypatch):
    monkeypatch.setattr("pliant.app.terminal.progress.PATIENCE", 0.0)
    monkeypatch.setattr("pliant.app.terminal.progress.QUIET_INTERVAL", 0.0)
    shown = pl.simulate(scene, 3, progress=True)
    assert np.array_equal(shown.displacements, pl.simulate(scene, 3).displacements)
    pl.modes(scene, 2, method="iterated", progress=True)
    told = capsys.readouterr().err
    assert "simulating: 1 of 3\nsimulating: 2 of 3\nsimulating: 3 of 3\n" in told
    assert "of 2, residual " in told


class FakeNotebook(types.ModuleType):
    """What IPython is behind a notebook: its shell's name, and displays that can be updated."""

    def __init__(self):
        super().__init__("IPython")
        self.shown = []
        self.get_ipython = lambda: type("ZMQInteractiveShell", (), {})()
        self.display = types.ModuleType("IPython.display")
        self.display.HTML = lambda text: text
        self.display.display = self._display

    def _display(self, text, *, display_id):
        self.shown.append(text)
        return types.SimpleNamespace(update=self.shown.append)


def test_progress_in_a_notebook(scene, monkeypatch, capsys):
    notebook = FakeNotebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    for place in ("terminal.progress", "fitted.fit_progress"):
        monkeypatch.setattr(f"pliant.app.{place}.BLINK", 0.0)
    monkeypatch.setattr("pliant.app.terminal.progress.PATIENCE", 0.0)
    run = pl.simulate(scene, 3, progress=True)
    assert '<progress value="2" max="3"></progress> 2 of 3' in notebook.shown[1]
    assert "<progress" not in notebook.shown[-1]  # the bar is gone at the end
    steps = []
    seen = pl.NodeMotions.of(run, noise=1e-6)
    found = pl.reconstruct(
        scene, seen, {"youngs_modulus": 3200.0}, progress=True, on_step=steps.append,
        discretisation=False,
    )  # fmt: skip
    assert found.values["youngs_modulus"] == pytest.approx(3000.0, rel=1e-4)
    assert len(steps) == len(found.history)
    assert notebook.shown[-1].count("iteration") == len(steps)
    assert capsys.readouterr().err == ""
