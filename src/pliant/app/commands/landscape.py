"""`pliant landscape`: the cost over two unknowns, with the way a fit took (seed 000, fig. 5.6)."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pliant.app.describing.fineness import Fineness
from pliant.app.fitted.fit_choices import COSTS
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    SceneArgument,
    ShapeOption,
    ShapeUnitsOption,
    SpacingOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.film_options import (
    CamerasOption,
    CostOption,
    NoiseOption,
    PixelsOption,
    SeedOption,
    StepsOption,
    UnknownOption,
)
from pliant.core.errors import BadInput

MAX_POINTS = 101


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("landscape")(map_scene)


@command
def map_scene(
    scene: SceneArgument,
    over: Annotated[
        tuple[str, str], typer.Option("--over", metavar="NAME NAME", help="The two unknowns.")
    ] = ("youngs_modulus", "poisson_ratio"),
    fit: Annotated[
        str | None,
        typer.Option("--fit", metavar="DIR", help="Show this fit's path over its observations."),
    ] = None,
    unknown: UnknownOption = None,
    points: Annotated[int, typer.Option("--points", help="Simulations along each axis.")] = 9,
    span: Annotated[
        float, typer.Option("--span", help="Width of the map on each side, as a share.")
    ] = 0.25,
    cost: CostOption = "auto",
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="runs/SCENE-landscape by default."),
    ] = None,
    cameras: CamerasOption = 10,
    pixels: PixelsOption = 100,
    noise: NoiseOption = "0.5voxel",
    seed: SeedOption = 1,
    steps: StepsOption = None,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Map the cost of SCENE over two unknowns and draw the path of a fit into it."""
    from pliant.app.describing.scenes import ShapeFile, find_description
    from pliant.app.fitted.fit_values import parse_unknowns, scene_values
    from pliant.app.folders.films import Film, simulated, steps_of
    from pliant.app.folders.run_directory import open_scene
    from pliant.core.files import require_writable, write_json

    if not 3 <= points <= MAX_POINTS:
        raise BadInput(f"--points must lie between 3 and {MAX_POINTS}, not {points}.")
    if not 0.0 < span < 1.0:
        raise BadInput(f"--span must be a share between 0 and 1, not {span}.")
    if cost not in COSTS:
        raise BadInput(f"--cost must be one of {', '.join(COSTS)}, not '{cost}'.")
    if over[0] == over[1]:
        raise BadInput("--over needs two different unknowns.")
    film = Film(cameras, pixels, noise, seed)
    folder = Path(out or Path("runs") / f"{Path(scene).stem}-landscape")
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    require_writable(folder)
    file = ShapeFile.asked(shape, shape_units)
    description = Fineness(spacing, cells_across).of(find_description(scene, shape=file))
    set_machine(device, threads)
    built = open_scene(description, None, scene)
    own = scene_values(built)
    for name in over:
        if np.ndim(own.get(name, [])) != 0:
            raise BadInput(f"--over {name}: the scene has no single number of that name.")
    given = {text.partition("=")[0].strip(): text for text in unknown or []}
    starts = parse_unknowns([given.get(name, name) for name in over], built, away=fit is None)
    if fit is not None:
        seen, path = _known_fit(fit, over, built)
        centre = np.array([path[-1]] if len(path) else [[own[n] for n in over]])[0]
    else:
        seen = film.take(simulated(built, steps_of(built, steps), scene))
        path = _fitted(built, seen, starts, cost, over)
        centre = np.array([own[n] for n in over])
    x, y = (_axis(c, path[:, i], span, points) for i, c in enumerate(centre))
    values = cost_map(built, seen, over, x, y, cost)
    truth = (own[over[0]], own[over[1]]) if fit is None else None
    folder.mkdir(parents=True, exist_ok=True)
    _draw(folder / "landscape.png", over, x, y, values, path, truth)
    lowest = np.unravel_index(np.nanargmin(values), values.shape)
    result: dict[str, Any] = {
        "over": list(over),
        "x": x.tolist(),
        "y": y.tolist(),
        "cost": [[float(v) if np.isfinite(v) else None for v in row] for row in values],
        "path": path.tolist(),
        "lowest": [float(x[lowest[1]]), float(y[lowest[0]])],
        "out": str(folder),
    }
    write_json(folder / "landscape.json", result)
    lines = [
        f"lowest cost of {points} x {points} at {over[0]} = {result['lowest'][0]:.5g}, "
        f"{over[1]} = {result['lowest'][1]:.5g}",
        f"files in {folder}: landscape.png, landscape.json",
    ]
    answer(result, lines, as_json=as_json)


def _axis(centre: float, path: np.ndarray, span: float, points: int) -> np.ndarray:
    """Values about the centre that reach a little beyond the path."""
    reach = max(span * abs(centre), 1.15 * float(np.abs(path - centre).max(initial=0.0)), 1e-6)
    return centre + reach * np.linspace(-1.0, 1.0, points)


def _known_fit(folder: str, over: tuple[str, str], scene: Any) -> tuple[Any, np.ndarray]:
    from pliant.app.fitted.fit_directory import FitDirectory
    from pliant.app.fitted.fit_observations import observations_of

    directory = FitDirectory(folder)
    if not directory.exists:
        raise BadInput(f"{folder}: holds no fit (pliant reconstruct --out {folder}).")
    seen = observations_of(directory, scene, directory.asked())
    history = directory.history()
    for name in over:
        if history and name not in history[0].step.values:
            raise BadInput(f"{folder}: '{name}' was not an unknown of this fit.")
    return seen, np.array([[line.step.values[n] for n in over] for line in history]).reshape(-1, 2)


def _fitted(scene, seen, starts, cost, over) -> np.ndarray:
    from pliant.app.fitted.fit_progress import fit_progress
    from pliant.inverse.fitting.reconstruct import reconstruct

    with fit_progress() as shown:
        fit = reconstruct(scene, seen, starts, cost=cost, on_step=shown.step, progress=shown.reach)
    return np.array([[s.values[n] for n in over] for s in fit.history])


def cost_map(scene, seen, over, x: np.ndarray, y: np.ndarray, cost: str) -> np.ndarray:
    """(y, x) mean cost of a point, over those that count; NaN where a simulation failed."""
    from pliant.app.terminal.progress import progress
    from pliant.core.errors import SolverFailure
    from pliant.inverse.measuring.losses import Loss
    from pliant.inverse.motion.problem import Problem
    from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

    middle = {over[0]: float(x[len(x) // 2]), over[1]: float(y[len(y) // 2])}
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in middle.items()))
    problem = Problem(scene, seen, unknowns, cost=cost)
    loss = Loss(seen.noise or 0.1 * scene.body.spacing, "huber")
    values = np.full((len(y), len(x)), np.nan)
    with progress("mapping the cost", values.size) as shown:
        for k in range(values.size):
            j, i = divmod(k, len(x))
            try:
                q = np.concatenate(
                    [m.chart.coordinates(np.array([v])) for m, v in
                     zip(unknowns.members, (x[i], y[j]), strict=True)]
                )  # fmt: skip
                e = problem.evaluate(q, loss, derivatives=False)
                values[j, i] = e.cost / max(len(e.usable), 1) * seen.point_count
            except (SolverFailure, BadInput):
                continue  # beyond what the material allows: a hole in the map
            finally:
                shown.reach(k + 1)
    if not np.isfinite(values).any():
        raise BadInput("No point of the map could be simulated: choose a smaller --span.")
    return values


def _draw(path: Path, over, x, y, values, way: np.ndarray, truth) -> None:
    from pliant.app.pictures.map_figures import landscape as figure_of
    from pliant.app.pictures.report_figures import save

    save(figure_of(over, x, y, values, way, truth), path)
