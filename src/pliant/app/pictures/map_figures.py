"""Figures of maps: the cost over two unknowns, and cuts through a field of stiffness."""

from typing import Any

import numpy as np

from pliant.app.pictures.report_figures import FAINT, INK, RED, blank, spoken


def landscape(
    labels: tuple[str, str],
    x: np.ndarray,
    y: np.ndarray,
    cost: np.ndarray,
    path: np.ndarray,
    truth: tuple[float, float] | None,
) -> Any:
    """Rise of the cost (y, x) above its lowest, on a logarithmic scale, and the fit's path."""
    import matplotlib
    from matplotlib.colors import LogNorm

    figure = blank(8.2, 6.2)
    axes = figure.add_axes((0.12, 0.1, 0.7, 0.85))
    edges = (float(x[0]), float(x[-1]), float(y[0]), float(y[-1]))
    if np.isfinite(cost).all() and min(cost.shape) > 3:
        x, y, cost = _finer(x, y, cost)
    rise = cost - np.nanmin(cost)
    positive = rise[rise > 0.0]
    low = max(float(np.min(positive, initial=np.inf)), 1e-4 * float(np.nanmax(rise)))
    low, high = (low, float(np.nanmax(rise))) if np.isfinite(low) else (1e-3, 1.0)
    levels = np.geomspace(low, max(high, 1.01 * low), 22)
    shown = np.clip(rise, low, None)
    colours = matplotlib.colormaps["viridis_r"]
    filled = axes.contourf(x, y, shown, levels=levels, norm=LogNorm(low, high), cmap=colours)
    axes.contour(x, y, shown, levels=levels[::3], colors="white", linewidths=0.5, alpha=0.6)
    if len(path):
        axes.plot(path[:, 0], path[:, 1], "o-", color="white", markersize=6.5, linewidth=3.0)
        axes.plot(
            path[:, 0], path[:, 1], "o-", color=RED, markersize=4.5, linewidth=1.6, label="fit"
        )
        axes.plot(path[0, 0], path[0, 1], "s", color=RED, markersize=8, label="start")
    if truth is not None:
        axes.plot(*truth, "+", color="black", markersize=15, markeredgewidth=2.4, label="truth")
    axes.set_xlim(edges[:2])
    axes.set_ylim(edges[2:])
    axes.tick_params(colors=FAINT, labelsize=9)
    axes.set_xlabel(spoken(labels[0]), color=INK)
    axes.set_ylabel(spoken(labels[1]), color=INK)
    axes.legend(fontsize=9, loc="best", labelcolor=INK)  # beside the path
    bar = figure.colorbar(filled, cax=figure.add_axes((0.845, 0.1, 0.025, 0.85)))
    ticks = 10.0 ** np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    bar.set_ticks(list(ticks))
    bar.set_label("cost above the lowest", color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=FAINT)
    return figure


def _finer(x: np.ndarray, y: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same map by a cubic spline: on a logarithmic scale a coarse valley looks torn."""
    from scipy.interpolate import RectBivariateSpline

    fine_x, fine_y = (np.linspace(a[0], a[-1], 201) for a in (x, y))
    fine = RectBivariateSpline(y, x, cost)(fine_y, fine_x)
    return fine_x, fine_y, fine


def field_slices(centres: np.ndarray, values: np.ndarray, spacing: float) -> Any:
    """Three cuts (cells nearest to each plane) through the stiffest cell, colours by logarithm."""
    from matplotlib.colors import LogNorm

    stiffest = centres[int(np.argmax(values))]
    low, high = float(values.min()), float(values.max())
    norm = LogNorm(low, max(high, 1.02 * low))
    figure = blank(11.0, 4.0)
    drawn = None
    for k, (normal, a, b) in enumerate(((2, 0, 1), (1, 0, 2), (0, 2, 1))):
        axes = figure.add_axes((0.05 + 0.285 * k, 0.13, 0.245, 0.76))
        near = np.abs(centres[:, normal] - stiffest[normal]) < 0.51 * spacing
        at, v = centres[near], values[near]
        index = np.round((at[:, [a, b]] - at[:, [a, b]].min(axis=0)) / spacing).astype(int)
        image = np.full(index.max(axis=0)[::-1] + 1, np.nan)
        image[index[:, 1], index[:, 0]] = v
        lo, hi = at[:, [a, b]].min(axis=0), at[:, [a, b]].max(axis=0)
        half = 0.5 * spacing
        drawn = axes.imshow(
            image, origin="lower", norm=norm, cmap="viridis",
            extent=(lo[0] - half, hi[0] + half, lo[1] - half, hi[1] + half),
        )  # fmt: skip
        axes.set_title(f"{'xyz'[normal]} = {stiffest[normal]:.3g}", fontsize=10, color=INK)
        axes.set_xlabel("xyz"[a], color=INK)
        axes.set_ylabel("xyz"[b], color=INK)
        axes.tick_params(colors=FAINT, labelsize=8)
        axes.locator_params(nbins=4)
    assert drawn is not None
    bar = figure.colorbar(drawn, cax=figure.add_axes((0.9, 0.13, 0.015, 0.76)))
    low, high = bar.mappable.get_clim()
    ticks = np.geomspace(float(low or 1.0), float(high or 1.0), 5)
    bar.set_ticks(list(ticks), labels=[f"{v:,.0f}" if v >= 100 else f"{v:.3g}" for v in ticks])
    bar.ax.minorticks_off()
    bar.set_label("Young's modulus [Pa]", color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=FAINT)
    return figure
