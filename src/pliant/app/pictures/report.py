"""The report of a fit: one HTML page that needs nothing else, and its pictures as PNG files."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.fitted.fit_directory import FIGURES, REPORT
from pliant.app.fitted.fit_table import table_rows
from pliant.app.fitted.fits import FitRun
from pliant.app.pictures import map_figures as maps
from pliant.app.pictures import report_figures as figures
from pliant.app.pictures.cloud_picture import cloud_picture
from pliant.app.pictures.evidence import Evidence
from pliant.app.pictures.picture import Studio
from pliant.app.pictures.report_page import page
from pliant.app.pictures.track_pictures import tracks_over_time
from pliant.app.terminal.progress import progress
from pliant.core.files import write_text
from pliant.observe.tracks import TrackedPoints

MAPS = 5
"""Cameras whose residuals are shown."""

BLUR = 5
"""Pixels over which residual maps are averaged: noise falls to a fifth, and a bias shows."""

DOT = 0.2
"""Radius of a drawn point, in cells."""


# --- the figures


def write_report(run: FitRun, folder: Path, *, showcase: bool = False) -> Path:
    """Write report.html and figures/*.png; with `showcase` also demo.png. Returns the page."""
    place = folder / FIGURES
    place.mkdir(parents=True, exist_ok=True)
    evidence = Evidence(run)
    made: list[tuple[str, str, str]] = []  # file, heading, text

    def keep(name: str, figure: Any, heading: str, text: str) -> None:
        figures.save(figure, place / f"{name}.png")
        made.append((name, heading, text))

    jobs = [_over_time, _field, _residuals, _convergence, _path, _uncertainty, _statistics]
    if isinstance(run.seen, TrackedPoints):
        jobs = [tracks_over_time, _field, _convergence, _path, _uncertainty]
    with progress("drawing the report", len(jobs)) as shown:
        for k, job in enumerate(jobs):
            for item in job(evidence):
                keep(*item)
            shown.reach(k + 1)
    if showcase:
        figures.save(_showcase(evidence), folder / "demo.png")
    report = folder / REPORT
    write_text(report, page(run, [(place / f"{n}.png", h, t) for n, h, t in made]))
    return report


def _studio(evidence: Evidence, width: int, height: int) -> Studio:
    scene = evidence.run.scene
    motion = [evidence.nodes(evidence.fitted, k) for k in evidence.frames]
    return Studio(scene, motion, width=width, height=height)


def _camera_colours(frame: Any) -> np.ndarray:
    """A colour per camera; without cameras one for all."""
    import matplotlib

    if not frame.organised:
        return np.tile([0.16, 0.39, 0.71], (len(frame), 1))
    count = int(frame.camera.max()) + 1
    wheel = matplotlib.colormaps["turbo"](np.linspace(0.06, 0.94, max(count, 2)))[:, :3]
    return wheel[frame.camera]


def _over_time(e: Evidence):
    run = e.run
    moments = e.moments()
    studio = _studio(e, 460, 400)
    radius = DOT * run.scene.body.spacing
    seen, fitted, off = [], [], []
    for k in moments:
        frame = run.film.frames[k]
        sight = e.sight(e.fitted, k)
        seen.append(cloud_picture(studio, sight.points, _camera_colours(frame), radius=radius))
        nodes = e.nodes(e.fitted, k)
        r = np.nan_to_num(e.residuals(e.fitted, k))
        colours = figures.residual_colours(r, 3.0 * e.sigma)
        fitted.append(studio.picture(nodes))
        where = sight.points + r[:, None] * sight.ray  # points without a ray stay where they are
        off.append(cloud_picture(studio, where, colours, radius=1.3 * radius, nodes=nodes))
    titles = [f"t = {run.film.frames[k].time:.2f} s" for k in moments]
    rows = [("filmed points", seen), ("recovered surface", fitted), ("residuals", off)]
    points, moved = "the recorded points", "the points on it, red outside it and blue inside"
    if run.film.cameras:
        points = "the points the cameras saw, one colour for each camera"
        moved = (
            "the points moved onto it along their rays, red where they were seen before it and "
            "blue behind it"
        )
    yield (
        "motion", figures.pictures(rows, titles), "What was seen and what was recovered",
        f"Above, {points}; in the middle, the motion simulated with the recovered values, coloured "
        f"by displacement; below, that surface with {moved}, by up to three standard deviations of "
        "the noise.",
    )  # fmt: skip


def _residuals(e: Evidence):
    run = e.run
    # the frame in which the start is worst off tells most
    rms = [np.sqrt(np.nanmean(e.residuals(e.start, k) ** 2)) for k in e.frames]
    k = e.frames[int(np.nanargmax(rms))]
    frame = run.film.frames[k]
    both = [("at the start", e.residuals(e.start, k)), ("recovered", e.residuals(e.fitted, k))]
    when = f"t = {frame.time:.2f} s"
    if frame.organised:
        busy = np.bincount(frame.camera, minlength=len(run.film.cameras))
        those = np.flatnonzero(busy)
        chosen = np.unique(np.linspace(0, len(those) - 1, min(MAPS, len(those))).round())
        cameras = [int(those[int(i)]) for i in chosen]
        rows = [(name, [_image(run, frame, r, c) for c in cameras]) for name, r in both]
        figure = figures.residual_maps(rows, [f"camera {c}" for c in cameras], e.sigma)
        text = (
            f"Predicted minus observed depth at {when}, when the start was worst, each pixel "
            f"averaged with its neighbours ({BLUR} x {BLUR}) to show through the noise. What the "
            "fit leaves should be even, without the body's parts in it."
        )
    else:
        studio = _studio(e, 560, 460)
        radius = DOT * run.scene.body.spacing
        images = [
            cloud_picture(
                studio, frame.points,
                figures.residual_colours(np.nan_to_num(r), 3.0 * e.sigma), radius=radius,
            )
            for _, r in both
        ]  # fmt: skip
        figure = figures.pictures([(when, images)], [name for name, _ in both])
        text = (
            f"Signed distance of the points from the surface at {when}, red outside and blue "
            "inside, by up to three standard deviations. What the fit leaves should look even."
        )
    yield "residuals", figure, "Residuals", text


def _image(run: FitRun, frame: Any, r: np.ndarray, camera: int) -> np.ndarray:
    """A camera's residuals as an image, locally averaged, cut to what is seen in the frame."""
    from scipy.ndimage import uniform_filter

    c = run.film.cameras[camera]
    image = np.full(c.pixel_count, np.nan)
    own = frame.camera == camera
    image[frame.pixel[own]] = r[own]
    image = image.reshape(c.height, c.width)
    there = np.isfinite(image)
    weight = uniform_filter(there.astype(float), BLUR)
    mean = uniform_filter(np.where(there, image, 0.0), BLUR) / np.maximum(weight, 1e-9)
    low, high = _window(run, frame)
    return np.where(there, mean, np.nan)[low[1] : high[1], low[0] : high[0]]


def _window(run: FitRun, frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """First and last column and row that any camera uses, with some room, as a square."""
    widths = np.array([c.width for c in run.film.cameras])[frame.camera]
    at = np.stack([frame.pixel % widths, frame.pixel // widths], axis=1)
    low, high = at.min(axis=0), at.max(axis=0) + 1
    half = 0.5 * (high - low).max() * 1.08
    middle = 0.5 * (low + high)
    return np.maximum(np.floor(middle - half), 0).astype(int), np.ceil(middle + half).astype(int)


def _courses(run: FitRun) -> list[figures.Course]:
    fit = run.fit
    return [
        figures.Course(
            label, [s.values[label] for s in fit.history],
            fit.total_sigma.get(label, math.nan), run.truth.get(label),
        )
        for label in fit.labels[:8]
    ]  # fmt: skip


def _convergence(e: Evidence):
    history = e.run.fit.history
    iterations = [s.iteration for s in history]
    figure = figures.convergence(
        iterations, [s.rms for s in history], e.run.fit.noise, _courses(e.run)
    )
    yield (
        "convergence", figure, "Convergence",
        "The residuals and the values after each step of the optimiser. The band is two standard "
        "deviations about the last value.",
    )  # fmt: skip


def _path(e: Evidence):
    """The way of two unknowns over the quadratic model of the cost at the end."""
    fit = e.run.fit
    count = len(fit.labels)
    if not 2 <= count <= 6 or fit.covariance.shape != (count, count):
        return
    a, b = fit.labels[:2]
    block = fit.covariance[:2, :2]
    if not np.isfinite(block).all() or np.linalg.det(block) <= 0.0:
        return
    steps = [s for s in fit.history if not s.stage]
    path = np.array([[s.values[a], s.values[b]] for s in steps])
    last = np.array([fit.values[a], fit.values[b]])
    half = 1.25 * np.maximum(np.abs(path - last).max(axis=0), 4.0 * np.sqrt(np.diag(block)))
    x, y = (np.linspace(last[i] - half[i], last[i] + half[i], 61) for i in range(2))
    dx, dy = np.meshgrid(x - last[0], y - last[1])
    inverse = np.linalg.inv(block)
    rise = 0.5 * (inverse[0, 0] * dx**2 + 2.0 * inverse[0, 1] * dx * dy + inverse[1, 1] * dy**2)
    truth = e.run.truth
    known = (truth[a], truth[b]) if a in truth and b in truth else None
    figure = maps.landscape((a, b), x, y, rise, path, known)
    yield (
        "path", figure, "The way to the minimum",
        "The values after each step over the cost as its curvature at the end predicts it; "
        "the command pliant landscape SCENE --fit DIR computes the true cost, point by point.",
    )  # fmt: skip


def _field(e: Evidence):
    """Slices of a Young's modulus per cell."""
    values = e.run.values.get("youngs_modulus")
    if values is None or np.ndim(values) == 0:
        return
    body = e.run.scene.body
    figure = maps.field_slices(
        body.nodes[body.cells].mean(axis=1), np.asarray(values, float), body.spacing
    )
    yield (
        "field", figure, "Young's modulus of every cell",
        "Three cuts through the stiffest cell; a cell that hardly moves tells little about itself "
        "and leans on its neighbours.",
    )  # fmt: skip


def _uncertainty(e: Evidence):
    fit = e.run.fit
    count = len(fit.labels)
    if not 2 <= count <= 6 or fit.covariance.shape != (count, count):
        return
    values = np.array([fit.values[label] for label in fit.labels])
    if not (np.isfinite(fit.covariance).all() and np.isfinite(values).all()):
        return
    figure = figures.ellipses(fit.labels, values, fit.covariance, e.run.truth)
    yield (
        "ellipses", figure, "How sure it is",
        "Ellipses of one, two and three standard deviations from the curvature of the cost and the "
        "noise found. A long, tilted one means that the data see mostly a combination of the two.",
    )  # fmt: skip


def _statistics(e: Evidence):
    run = e.run
    parts = [e.residuals(e.fitted, k) for k in e.frames]
    rms = np.array([np.sqrt(np.nanmean(r**2)) if np.isfinite(r).any() else 0.0 for r in parts])
    r = np.concatenate(parts)
    times = np.array([run.film.frames[k].time for k in e.frames])
    figure = figures.residual_statistics(r[np.isfinite(r)], run.fit.noise, times, rms)
    yield (
        "statistics", figure, "Is what is left noise?",
        "Left, all residuals of the fit against a normal distribution; right, their size over time "
        "and the noise (dashed). A rise would mean that the model goes wrong with time.",
    )  # fmt: skip


def _showcase(e: Evidence) -> Any:
    run = e.run
    k = e.moments()[-1]
    rest = e.nodes(e.fitted, e.frames[0])
    moved = [np.linalg.norm(e.nodes(e.fitted, f) - rest, axis=1).max() for f in e.frames]
    k = e.frames[int(np.argmax(moved))]
    studio = _studio(e, 940, 860)
    frame = run.film.frames[k]
    radius = DOT * run.scene.body.spacing
    left = cloud_picture(studio, frame.points, _camera_colours(frame), radius=radius)
    right = studio.picture(e.nodes(e.fitted, k), time=frame.time)
    noise = run.fit.noise / run.scene.body.spacing
    captions = (
        f"What {len(run.film.cameras)} depth cameras saw (noise: {noise:.2g} voxels)",
        "What Pliant recovered",
    )
    rows = table_rows(run.result)
    rows = [rows[0], *([figures.spoken(row[0]), *row[1:]] for row in rows[1:])]
    footer = (
        f"{run.result['nodes']:,} nodes, {run.result['steps']} time steps, "
        f"{run.film.point_count:,} observed points, none of them tracked.\n"
        f"{run.fit.iterations} iterations in {run.fit.seconds:.0f} s. Band: two standard "
        "deviations as the fit estimates them."
    )
    iterations = [s.iteration for s in run.fit.history]
    return figures.showcase(left, right, captions, rows, iterations, _courses(run), footer)
