"""The report's figures, each a Matplotlib figure made of plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.files import whole_file

INK, FAINT, GRID = "#22272e", "#6b7480", "#e3e7ec"
BLUE, ORANGE, GREEN, RED = "#2864b4", "#e07b28", "#2c8c5a", "#c23b3b"
RESIDUAL_COLOURS = "RdBu_r"

NAMES = {
    "youngs_modulus": "Young's modulus [Pa]",
    "poisson_ratio": "Poisson's ratio",
    "density": "density [kg/m³]",
    "mass_damping": "mass damping [1/s]",
    "stiffness_damping": "stiffness damping [s]",
    "contact_stiffness": "contact stiffness [Pa/m]",
    "ground_offset": "ground offset [m]",
}


def spoken(label: str) -> str:
    """A label as people write it."""
    return NAMES.get(label, label.replace("_", " "))


def blank(width: float, height: float) -> Any:
    """An empty figure of a size in inches."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(width, height), dpi=130)
    figure.patch.set_facecolor("white")
    return figure


def pixels(figure: Any) -> np.ndarray:
    """A figure as (height, width, 3) uint8."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG; not packed as tightly as can be, which would take ten times longer."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(pixels(figure)).save(temporary, format="PNG", compress_level=6)


def tidy(axes: Any) -> None:
    """Light frame and grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#aab2bb")
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=8.5)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


# --- pictures over time


def pictures(
    rows: Sequence[tuple[str, Sequence[np.ndarray]]], titles: Sequence[str], *, width: float = 11.0
) -> Any:
    """Rows of rendered pictures, a name at the left of each row, a title above each column."""
    columns = len(titles)
    h, w = rows[0][1][0].shape[:2]
    cell = (width - 0.35) / columns
    height = len(rows) * cell * h / w + 0.35
    figure = blank(width, height)
    grid = figure.add_gridspec(
        len(rows), columns, left=0.35 / width, right=1.0, bottom=0.0, top=1.0 - 0.32 / height,
        wspace=0.02, hspace=0.02,
    )  # fmt: skip
    for r, (name, images) in enumerate(rows):
        for c, image in enumerate(images):
            axes = figure.add_subplot(grid[r, c])
            axes.imshow(image, interpolation="lanczos")
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(False)
            if r == 0:
                axes.set_title(titles[c], fontsize=10, color=INK)
            if c == 0:
                axes.set_ylabel(name, fontsize=10, color=INK)
    return figure


def residual_colours(r: np.ndarray, bound: float) -> np.ndarray:
    """SRGB colours (n, 3) of residuals on a scale of +- bound."""
    import matplotlib

    return matplotlib.colormaps[RESIDUAL_COLOURS](0.5 + 0.5 * np.clip(r / bound, -1, 1))[:, :3]


def residual_maps(
    rows: Sequence[tuple[str, Sequence[np.ndarray]]], titles: Sequence[str], bound: float
) -> Any:
    """Images of residuals [m], NaN where nothing was seen; one scale of +- bound for all."""
    import matplotlib

    columns = len(titles)
    figure = blank(11.0, 11.0 / columns * len(rows) * 0.92 + 0.3)
    grid = figure.add_gridspec(
        len(rows), columns + 1, width_ratios=[1.0] * columns + [0.06], left=0.035, right=0.93,
        bottom=0.02, top=0.9, wspace=0.06, hspace=0.06,
    )  # fmt: skip
    colours = matplotlib.colormaps[RESIDUAL_COLOURS].with_extremes(bad="#eef0f3")
    shown = None
    for r, (name, images) in enumerate(rows):
        for c, image in enumerate(images):
            axes = figure.add_subplot(grid[r, c])
            shown = axes.imshow(
                1e3 * image, cmap=colours, vmin=-1e3 * bound, vmax=1e3 * bound,
                interpolation="nearest",
            )  # fmt: skip
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_color("#c9cfd6")
            if r == 0:
                axes.set_title(titles[c], fontsize=10, color=INK)
            if c == 0:
                axes.set_ylabel(name, fontsize=10, color=INK)
    bar = figure.colorbar(shown, cax=figure.add_subplot(grid[:, columns]), extend="both")
    bar.set_label("predicted − observed depth [mm]", fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, colors=FAINT)
    bar.outline.set_visible(False)
    return figure


# --- convergence


@dataclass(frozen=True)
class Course:
    """One unknown over the iterations; sigma: the total one."""

    label: str
    values: list[float]
    sigma: float
    truth: float | None


def draw_rms(axes: Any, iterations: Sequence[int], rms: Sequence[float], noise: float) -> None:
    """Residuals over the iterations, with the noise beneath which they cannot fall."""
    tidy(axes)
    axes.plot(iterations, [1e3 * v for v in rms], "o-", color=BLUE, markersize=4.5, linewidth=1.6)
    if noise > 0.0:
        axes.axhline(1e3 * noise, color=FAINT, linestyle="--", linewidth=1.1)
        axes.annotate(
            "noise", (1.0, 1e3 * noise), xycoords=("axes fraction", "data"), ha="right", va="top",
            fontsize=8.5, color=FAINT, xytext=(0, -3), textcoords="offset points",
        )  # fmt: skip
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.12 * (high - low), high)
    axes.set_xlabel("iteration", fontsize=9)
    axes.set_ylabel("rms residual [mm]", fontsize=9)
    _whole_ticks(axes, iterations)


def draw_course(axes: Any, iterations: Sequence[int], course: Course) -> None:
    """A value over the iterations, its truth, and two total standard deviations about the last."""
    tidy(axes)
    last = course.values[-1]
    if np.isfinite(course.sigma):
        axes.axhspan(
            last - 2 * course.sigma, last + 2 * course.sigma, color=ORANGE, alpha=0.18, lw=0
        )
    if course.truth is not None:
        axes.axhline(course.truth, color=GREEN, linestyle="--", linewidth=1.4)
        axes.annotate(
            "truth", (1.0, course.truth), xycoords=("axes fraction", "data"), ha="right",
            va="bottom", fontsize=8.5, color=GREEN, xytext=(0, 3), textcoords="offset points",
        )  # fmt: skip
    axes.plot(iterations, course.values, "o-", color=ORANGE, markersize=4.5, linewidth=1.6)
    axes.set_xlabel("iteration", fontsize=9)
    axes.set_ylabel(spoken(course.label), fontsize=9)
    axes.margins(y=0.12)
    _whole_ticks(axes, iterations)


def _whole_ticks(axes: Any, iterations: Sequence[int]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(set(iterations)) == 1:
        axes.set_xlim(iterations[0] - 0.5, iterations[0] + 0.5)


def convergence(
    iterations: Sequence[int], rms: Sequence[float], noise: float, courses: Sequence[Course]
) -> Any:
    """Residuals and values over the iterations."""
    count = 1 + len(courses)
    columns = min(count, 3)
    rows = -(-count // columns)
    figure = blank(11.0, 2.9 * rows)
    grid = figure.add_gridspec(rows, columns, wspace=0.32, hspace=0.42, left=0.07, right=0.985,
                               bottom=0.17 / rows + 0.01, top=1 - 0.06 / rows)  # fmt: skip
    draw_rms(figure.add_subplot(grid[0, 0]), iterations, rms, noise)
    for i, course in enumerate(courses, start=1):
        draw_course(figure.add_subplot(grid[i // columns, i % columns]), iterations, course)
    return figure


# --- uncertainty


def ellipses(
    labels: Sequence[str], values: np.ndarray, covariance: np.ndarray, truth: dict[str, float]
) -> Any:
    """Ellipses of one, two and three standard deviations of every pair of unknowns."""
    pairs = [(i, j) for i in range(len(labels)) for j in range(i + 1, len(labels))]
    columns = min(len(pairs), 3)
    rows = -(-len(pairs) // columns)
    width = min(11.0, 4.6 * columns)
    figure = blank(width, 3.6 * rows)
    grid = figure.add_gridspec(
        rows, columns, wspace=0.36, hspace=0.4, left=0.85 / width, right=0.97,
        bottom=0.6 / (3.6 * rows), top=1 - 0.15 / (3.6 * rows),
    )  # fmt: skip
    for k, (i, j) in enumerate(pairs):
        axes = figure.add_subplot(grid[k // columns, k % columns])
        _ellipse(axes, labels, values, covariance, truth, i, j)
    return figure


def _ellipse(axes, labels, values, covariance, truth, i, j) -> None:
    from matplotlib.ticker import MaxNLocator

    tidy(axes)
    C = covariance[np.ix_([i, j], [i, j])]
    lengths, vectors = np.linalg.eigh(C)
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = vectors @ (np.sqrt(np.maximum(lengths, 0.0))[:, None] * [np.cos(turn), np.sin(turn)])
    for n, alpha in ((3, 0.13), (2, 0.2), (1, 0.34)):
        x, y = values[i] + n * circle[0], values[j] + n * circle[1]
        axes.fill(x, y, color=BLUE, alpha=alpha, lw=0, label=f"{n} σ")
    axes.plot(values[i], values[j], "o", color=BLUE, markersize=6, label="recovered")
    if labels[i] in truth and labels[j] in truth:
        axes.plot(
            truth[labels[i]], truth[labels[j]], "+", color=GREEN, markersize=12,
            markeredgewidth=2.2, label="truth",
        )  # fmt: skip
    axes.set_xlabel(spoken(labels[i]), fontsize=9)
    axes.set_ylabel(spoken(labels[j]), fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.margins(0.12)
    axes.legend(fontsize=8, frameon=False, loc="best", labelcolor=INK)


def residual_statistics(
    residuals: np.ndarray, noise: float, times: np.ndarray, frame_rms: np.ndarray
) -> Any:
    """Distribution of all residuals against a normal one, and their size over time."""
    figure = blank(11.0, 3.0)
    grid = figure.add_gridspec(1, 2, wspace=0.24, left=0.07, right=0.985, bottom=0.18, top=0.95)
    axes = figure.add_subplot(grid[0, 0])
    tidy(axes)
    sigma = noise if noise > 0.0 else max(float(residuals.std()), 1e-12)
    edges = np.linspace(-5.0, 5.0, 81)
    density, _ = np.histogram(np.clip(residuals / sigma, -5, 5), bins=edges, density=True)
    middle = 0.5 * (edges[1:] + edges[:-1])
    axes.fill_between(middle, density, step="mid", color=BLUE, alpha=0.3, lw=0, label="residuals")
    normal = np.exp(-0.5 * middle**2) / np.sqrt(2.0 * np.pi)
    axes.plot(middle, normal, color=INK, linewidth=1.3, label="normal, the noise's σ")
    axes.set_xlabel("residual / σ", fontsize=9)
    axes.set_yticks([])
    axes.legend(fontsize=8.5, frameon=False, labelcolor=INK)
    axes = figure.add_subplot(grid[0, 1])
    tidy(axes)
    axes.plot(times, 1e3 * frame_rms, "o-", color=BLUE, markersize=3.5, linewidth=1.3)
    axes.axhline(1e3 * sigma, color=FAINT, linestyle="--", linewidth=1.1)
    axes.set_ylim(0.0, 1.25e3 * max(float(np.max(frame_rms, initial=0.0)), sigma))
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel("rms residual [mm]", fontsize=9)
    return figure


# --- the picture for the first page


def showcase(
    left: np.ndarray,
    right: np.ndarray,
    captions: tuple[str, str],
    rows: Sequence[Sequence[str]],
    iterations: Sequence[int],
    courses: Sequence[Course],
    advice: str,
) -> Any:
    """Filmed points, the recovered surface, the table and the values' way to the truth."""
    width, gap = 12.0, 0.02
    h, w = left.shape[:2]
    top = width / 2.0 * h / w
    below, head = 2.75, 0.5
    height = head + top + below
    figure = blank(width, height)
    for k, (image, caption) in enumerate(zip((left, right), captions, strict=True)):
        start = k * (0.5 + 0.5 * gap)
        axes = figure.add_axes((start, below / height, 0.5 - 0.5 * gap, top / height))
        axes.imshow(image, interpolation="lanczos", aspect="auto")
        axes.set_axis_off()
        figure.text(
            start + 0.012, 1.0 - 0.5 * head / height, caption, fontsize=14, color=INK, va="center",
            fontweight="bold",
        )  # fmt: skip
    axes = figure.add_axes((0.0, 0.0, 0.5, below / height))
    axes.set_axis_off()
    draw_table(axes, rows, advice)
    shown = list(courses)[:2]
    for k, course in enumerate(shown):
        room = 0.46 / max(len(shown), 1)
        axes = figure.add_axes((0.565 + k * room, 0.52 / height, room - 0.07, 1.95 / height))
        draw_course(axes, iterations, course)
    return figure


LETTER = 0.6
"""Mean width of a letter over the font's size, bold ones included."""


def draw_table(axes: Any, rows: Sequence[Sequence[str]], footer: str) -> None:
    """A table with a rule under its head, in letters small enough for all its columns."""
    count = len(rows[0])
    wide = [max(len(row[c]) for row in rows) + (1.0 if c == 0 else 2.0) for c in range(count)]
    points = 0.95 * 72.0 * axes.get_position().width * axes.figure.get_figwidth()
    size = min(10.0, points / (LETTER * sum(wide)))
    ends = np.cumsum(wide) / sum(wide)
    x = [0.025, *(0.025 + 0.95 * ends[1:])]
    step = min(0.16, 0.72 / (len(rows) + 1))
    y = 0.84
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            axes.text(
                x[c], y, cell, transform=axes.transAxes, fontsize=size if r else 0.92 * size,
                color=INK if r else FAINT, ha="left" if c == 0 else "right", va="center",
                fontweight="bold" if r and rows[0][c] == "value" else "normal",
            )  # fmt: skip
        if r == 0:
            axes.plot(
                [0.025, 0.975], [y - 0.5 * step] * 2, transform=axes.transAxes, color="#aab2bb",
                linewidth=1.0,
            )  # fmt: skip
        y -= step
    axes.text(
        0.025, y - 0.2 * step, footer, transform=axes.transAxes, fontsize=9.5, color=FAINT,
        va="top", linespacing=1.55,
    )  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
