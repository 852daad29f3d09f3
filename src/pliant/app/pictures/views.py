"""What a scene, a run, modes and a fit show of themselves in Python: `plot`, HTML, progress.

Entered by name in core.shown, so that records of the layers below can be looked at. Figures are
Matplotlib's, made without pyplot: they are returned, and shown by nobody but a notebook or
`figure.savefig`.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant.app.fitted.fit_progress import fit_progress
from pliant.app.pictures.report_figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    RED,
    Course,
    blank,
    convergence,
    pictures,
    tidy,
)
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.shown import view
from pliant.dynamics.model import World
from pliant.dynamics.modes import Modes
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.dynamics.scene import Scene
from pliant.dynamics.trajectory import Trajectory
from pliant.inverse.fitting.fit import Fit

MOST_COURSES = 8
"""Unknowns that a fit's figure shows."""

MOST_PICTURES = 24

MOST_ROWS = 40
"""Of a table in a notebook."""

ENERGIES = {"kinetic": BLUE, "elastic": ORANGE, "gravity": GREEN, "contact": RED}

view("progress")(progress)
view("fit_progress")(fit_progress)


# --- figures


@view("PartsScene.plot")
@view("Scene.plot")
def plot_scene(scene: Scene | PartsScene, *, width: int = 640, height: int = 480) -> Any:
    """The body at rest with what is around it."""
    image = _rendered(scene, [scene.body.nodes], width=width, height=height)[0]
    return _with_picture(pictures([("", [image])], [_title(scene)], width=6.4))


@view("Trajectory.plot")
def plot_run(run: Trajectory, *, frames: int = 3, colour: str = "displacement") -> Any:
    """Pictures of some frames, evenly spread; energies and the largest displacement over time.

    frames = 0: no pictures. colour: displacement, strain or stress.
    """
    if not 0 <= frames <= MOST_PICTURES:
        raise BadInput(f"frames must be 0 to {MOST_PICTURES}, not {frames}.")
    drawn = isinstance(run.scene, World) and hasattr(run.scene, "stress") and frames > 0
    width, below = 11.0, 3.0
    images: list[np.ndarray] = []
    chosen = np.unique(np.linspace(0, run.steps, max(frames, 1)).round().astype(int))
    if drawn:
        images = _rendered(run.scene, [run.nodes(k) for k in chosen], colour=colour)
    above = width / len(images) * 0.75 + 0.3 if images else 0.0
    figure = blank(width, above + below)
    share = below / (above + below)
    if images:
        top = figure.add_gridspec(1, len(images), left=0.01, right=0.99, wspace=0.02,
                                  bottom=share, top=1.0 - 0.3 / (above + below))  # fmt: skip
        for c, (k, image) in enumerate(zip(chosen, images, strict=True)):
            axes = figure.add_subplot(top[0, c])
            axes.imshow(image, interpolation="lanczos")
            axes.set_axis_off()
            axes.set_title(f"t = {run.times[k]:.3g} s", fontsize=10, color=INK)
    grid = figure.add_gridspec(1, 2, wspace=0.24, left=0.08, right=0.985,
                               bottom=0.16 * share + 0.02, top=0.92 * share)  # fmt: skip
    _draw_energies(figure.add_subplot(grid[0, 0]), run)
    _draw_displacements(figure.add_subplot(grid[0, 1]), run)
    return _with_picture(figure)


def _draw_energies(axes: Any, run: Trajectory) -> None:
    tidy(axes)
    for name, colour in ENERGIES.items():
        values = np.asarray(getattr(run.energies, name), float)
        if values.shape == run.times.shape and np.any(values != 0.0):
            axes.plot(run.times, values, color=colour, linewidth=1.5, label=name)
    total = np.asarray(run.energies.total, float)
    if total.shape == run.times.shape:
        axes.plot(run.times, total, color=FAINT, linestyle="--", linewidth=1.2, label="total")
        axes.legend(fontsize=8.5, frameon=False)
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel("energy [J]", fontsize=9)


def _draw_displacements(axes: Any, run: Trajectory) -> None:
    """Components of the node that moves farthest."""
    tidy(axes)
    size = np.linalg.norm(run.displacements, axis=2)
    node = int(np.unravel_index(size.argmax(), size.shape)[1]) if size.size else 0
    for axis, colour in zip(range(run.displacements.shape[2]), (BLUE, ORANGE, GREEN), strict=False):
        axes.plot(
            run.times, run.displacements[:, node, axis], color=colour, linewidth=1.5,
            label="xyz"[axis],
        )  # fmt: skip
    axes.legend(fontsize=8.5, frameon=False, title="the node that moves farthest", title_fontsize=8)
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel("displacement [m]", fontsize=9)


@view("Modes.plot")
def plot_modes(modes: Modes, *, count: int | None = None, swing: float = 0.15) -> Any:
    """A picture of each mode, its largest displacement `swing` of the body's longest side."""
    if modes.scene is None:
        raise BadInput("These modes do not know their scene, so there is nothing to draw.")
    count = len(modes.frequencies) if count is None else count
    if not 1 <= count <= min(len(modes.frequencies), MOST_PICTURES):
        most = min(len(modes.frequencies), MOST_PICTURES)
        raise BadInput(f"count must be 1 to {most}, not {count}.")
    body = modes.scene.body
    length = swing * float(np.ptp(body.nodes, axis=0).max())
    size = [np.linalg.norm(shape, axis=1).max() for shape in modes.shapes[:count]]
    bent = [
        body.nodes + length / max(float(s), 1e-300) * shape
        for s, shape in zip(size, modes.shapes, strict=False)
    ]
    images = _rendered(modes.scene, bent)
    columns = min(count, 3)
    rows = -(-count // columns)
    width = 11.0 / 3.0 * columns
    figure = blank(width, rows * (width / columns * 0.75 + 0.3))
    for k, image in enumerate(images):
        axes = figure.add_subplot(rows, columns, k + 1)
        axes.imshow(image, interpolation="lanczos")
        axes.set_axis_off()
        axes.set_title(f"{k + 1}: {modes.frequencies[k]:.4g} Hz", fontsize=10, color=INK)
    figure.subplots_adjust(0.01, 0.01, 0.99, 1.0 - 0.25 / figure.get_figheight(), 0.02, 0.12)
    return _with_picture(figure)


@view("Fit.plot")
def plot_fit(fit: Fit, *, truth: dict[str, float] | None = None) -> Any:
    """Residuals and values over the iterations, with two total standard deviations."""
    steps = [s for s in fit.history if not s.stage] or fit.history
    if not steps:
        raise BadInput("This fit has no history, so there is nothing to draw.")
    error = fit.total_sigma or fit.sigma
    courses = [
        Course(label, [s.values[label] for s in steps], error[label], (truth or {}).get(label))
        for label in fit.labels[:MOST_COURSES]
        if all(label in s.values for s in steps)
    ]
    numbers = [s.iteration for s in steps]
    return _with_picture(convergence(numbers, [s.rms for s in steps], fit.noise, courses))


def _rendered(scene: Any, motion: Sequence[np.ndarray], **options: Any) -> list[np.ndarray]:
    from pliant.app.pictures.picture import Studio

    given = {"width": 480, "height": 360, **options}
    studio = Studio(scene, [scene.body.nodes, *motion], **given)
    return [studio.picture(nodes) for nodes in motion]


def _with_picture(figure: Any) -> Any:
    """The figure, which notebooks can show although pyplot does not know of it."""

    def png() -> bytes:
        import io

        stream = io.BytesIO()
        figure.savefig(stream, format="png")
        return stream.getvalue()

    figure._repr_png_ = png
    return figure


# --- tables


@view("Scene.html")
def scene_table(scene: Scene) -> str:
    """Body, material and surroundings."""
    m, body = scene.material, scene.body
    made = scene.law if isinstance(scene.law, str) else getattr(scene.law, "name", scene.model)
    rows = [
        ("body", repr(body).strip("<>")),
        ("law" if scene.law is not None else "model", str(made)),
        ("Young's modulus", f"{_range(m.youngs_modulus)} Pa"),
        ("Poisson's ratio", _range(m.poisson_ratio)),
        ("density", f"{_range(m.density)} kg/m³"),
        ("gravity", f"{tuple(float(g) for g in scene.gravity)} m/s²"),
        ("time step", f"{scene.dt:g} s ({scene.integrator.name})"),
    ]
    counts = (
        ("held regions", scene.fixed), ("loads", scene.loads), ("obstacles", scene.obstacles),
        ("regions of other material", m.regions), ("viscoelastic branches", m.branches),
    )  # fmt: skip
    rows += [(name, str(len(items))) for name, items in counts if items]
    return _html(_title(scene) or "Scene", rows)


@view("PartsScene.html")
def parts_table(scene: PartsScene) -> str:
    """A row for each part, and what they share."""
    rows = [
        (part.name, f"{repr(own.body).strip('<>')}, {_range(part.material.youngs_modulus)} Pa")
        for part, own in zip(scene.parts, scene.scenes, strict=True)
    ]
    rows += [
        ("gravity", f"{tuple(float(g) for g in scene.gravity)} m/s²"),
        ("time step", f"{scene.dt:g} s ({scene.integrator.name})"),
    ]
    if scene.obstacles:
        rows.append(("obstacles", str(len(scene.obstacles))))
    return _html(_title(scene) or "Scene", rows)


@view("Trajectory.html")
def run_table(run: Trajectory) -> str:
    """Length, displacement, energies, warnings."""
    last = run.energies
    rows = [
        ("steps", f"{run.steps} to t = {run.times[-1]:.4g} s"),
        ("nodes", f"{run.displacements.shape[1]:,}"),
        ("largest displacement", f"{run.largest:.4g} m"),
    ]
    for name in ENERGIES:
        values = np.atleast_1d(np.asarray(getattr(last, name), float))
        if np.any(values != 0.0):
            rows.append((f"{name} energy at the end", f"{values[-1]:.4g} J"))
    return _html(_title(run.scene) or "Run", rows, run.warnings())


@view("Modes.html")
def modes_table(modes: Modes) -> str:
    """Frequencies."""
    rows = [(str(k + 1), f"{f:.6g} Hz") for k, f in enumerate(modes.frequencies[:MOST_ROWS])]
    return _html("Modes", rows)


@view("Fit.html")
def fit_table(fit: Fit) -> str:
    """Values with their error bars, and the advice."""
    head = ["unknown", "start", "value", "sigma", *(["total sigma"] if fit.total_sigma else [])]
    rows = [
        [
            label, f"{fit.start[label]:.6g}", f"{fit.values[label]:.6g}", f"{fit.sigma[label]:.2g}",
            *([f"{fit.total_sigma[label]:.2g}"] if fit.total_sigma else []),
        ]
        for label in fit.labels[:MOST_ROWS]
    ]  # fmt: skip
    more = len(fit.labels) - len(rows)
    rows += [[f"and {more} more"]] if more else []
    told = [f"Not a success: {line}" for line in fit.reasons] + list(fit.advice)
    return _html("Fit" if fit.converged else "Fit, not converged", [head, *rows], told)


def _html(title: str, rows: Sequence[Sequence[str]], told: Sequence[str] = ()) -> str:
    """A small table; every text is escaped."""
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in told)
    return (
        f"<div><b>{html.escape(title)}</b><table>{body}</table>"
        f"{f'<ul>{lines}</ul>' if lines else ''}</div>"
    )


def _range(value: Any) -> str:
    array = np.asarray(value, float)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    return f"{array.min():.4g} to {array.max():.4g}"


def _title(scene: Any) -> str:
    return str((getattr(scene, "source", None) or {}).get("title") or "")
