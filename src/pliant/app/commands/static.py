"""`pliant static`: a scene at rest under its loads, as a run directory."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import ShapeFile, find_description
from pliant.app.folders.folder_lock import hold, lets_go
from pliant.app.folders.run_directory import RunDirectory, open_scene
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
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.lengths import length, place
from pliant.dynamics.scene import Scene


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("static")(rest_scene)


@command
@lets_go
def rest_scene(
    scene: SceneArgument,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Leave a run directory (for render, export, view), and rest.png.",
        ),
    ] = None,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    unloaded_to: Annotated[
        str | None,
        typer.Option(
            "--unloaded",
            metavar="FILE.npz",
            help="Take SCENE's shape as the one under its loads, as scanned, and leave the shape "
            "without them here, for --shape.",
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Force imbalance allowed, relative to the load.")
    ] = 1e-8,
    iterations: Annotated[
        int, typer.Option("--iterations", help="Of Newton's method in all, then it gives up.")
    ] = 400,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Give up after so long; no limit by default.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run that is there already.")
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Find where SCENE comes to rest."""
    from pliant.dynamics.rest import RestWatch
    from pliant.dynamics.statics import solve_static_recorded

    if not 0.0 < tolerance < 1.0:
        raise BadInput(f"--tolerance must lie between 0 and 1, not {tolerance}.")
    if iterations < 1:
        raise BadInput(f"--iterations must be at least 1, not {iterations}.")
    if seconds is not None and not seconds > 0.0:
        raise BadInput(f"--seconds must be positive, not {seconds}.")
    file = ShapeFile.asked(shape, shape_units)
    description = Fineness(spacing, cells_across).of(find_description(scene, shape=file))
    directory = None if out is None else _usable(out, overwrite=overwrite)
    set_machine(device, threads)
    built = require_elastic(open_scene(description, None, scene), "pliant static")
    if unloaded_to is not None:
        built = _without_loads(built, Path(unloaded_to))
    rests: list[tuple[float, np.ndarray]] = []

    def keep(load: float, u: np.ndarray) -> None:
        if rests and load <= rests[-1][0]:  # begun again, with other walls
            rests.clear()
        rests.append((load, u[:, : built.dim].copy()))

    with progress(f"rest of {scene}, per cent of the load", 100) as shown:

        def tell(load: float, imbalance: float, done: int) -> None:
            reached = int(100 * rests[-1][0]) if rests else 0
            told = f"trying {load:.1%} of the load, imbalance {imbalance:.1e}, iteration {done}"
            shown.reach(reached, told)

        watch = RestWatch(iterations, seconds, tell, keep)
        u, record = solve_static_recorded(built, tolerance=tolerance, watch=watch)
    size = np.linalg.norm(u, axis=1)
    most = int(np.argmax(size))
    result: dict[str, Any] = {
        "title": (built.source or {}).get("title", ""),
        "cells": len(built.body.cells),
        "nodes": len(built.body.nodes),
        "largest_displacement": float(size[most]),
        "largest_displacement_at": built.body.nodes[most].tolist(),
        "largest_displacement_vector": u[most].tolist(),
        "rotation_updates": record.rotation_updates,
        "iterations": record.solver_iterations,
        "imbalance": float(record.imbalance),
        "load_steps": record.load_steps,
    }
    lines = [
        f"{result['title'] or scene}: at rest after {record.rotation_updates} rotation updates, "
        f"imbalance {record.imbalance:.1e} of the load",
        f"largest displacement {length(float(size[most]), 6)} at {place(built.body.nodes[most])}",
    ]
    if directory is not None:
        _leave(built, directory, rests, result, overwrite=overwrite)
        lines.append(f"files in {directory.path}: rest.vtu, rest.png, trajectory.pvd")
    if unloaded_to is not None:
        lines.append(f"without its loads: {unloaded_to}")
        result["unloaded"] = unloaded_to
    answer(result, lines, as_json=as_json)


def _usable(out: str, *, overwrite: bool) -> RunDirectory:
    """The folder to be, locked; one that holds a run only if it may be replaced."""
    directory = RunDirectory(Path(out))
    directory.require_usable()
    if directory.exists and not overwrite:
        raise BadInput(f"{out}: holds a run already; choose another --out or give --overwrite.")
    hold(directory.path)
    return directory


def _leave(
    scene: Scene,
    directory: RunDirectory,
    rests: list[tuple[float, np.ndarray]],
    result: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    """A run directory of the unloaded body and of its rests under growing shares of the load."""
    from pliant.app.folders.export import FrameWriter
    from pliant.app.folders.run_directory import WORK, Snapshot, describe
    from pliant.app.folders.runs import export_frames
    from pliant.app.folders.settling import settled
    from pliant.app.pictures.picture import render, save_png

    result["out"] = str(directory.path)
    _, digest = describe(scene)
    if overwrite and directory.exists:
        directory.clear()
    with settled(directory, new=True):
        directory.begin(scene, digest)
        still = np.zeros_like(rests[-1][1])
        work = np.zeros((0, len(WORK)))
        for k, (load, u) in enumerate([(0.0, still), *rests]):
            own = {"u": u, "v": still, "a": still}
            directory.write_state(Snapshot(k, load, u, still, own, work))
        export_frames(scene, directory)
        u = rests[-1][1]
        FrameWriter(scene).write(directory.path / "rest.vtu", u)
        picture = render(scene, scene.body.nodes + u)
        save_png(directory.path / "rest.png", picture)
        told = {"status": "finished", "kind": "rest", "steps": len(rests), "files_digest": digest}
        directory.write_result(result | told | {"warnings": []})


def _without_loads(scene: Scene, path: Path) -> Scene:
    """The scene whose rest is the shape given; its own shape goes into a file."""
    from pliant.dynamics.unloading import unloaded
    from pliant.geometry.field import sample

    if path.suffix != ".npz" or not path.absolute().parent.is_dir():
        raise BadInput(f"{path}: --unloaded needs a file .npz in a folder that is there.")
    if not scene.body.is_grid:
        raise BadInput("--unloaded is for bodies on a grid; use pl.unloaded for a mesh.")
    found = unloaded(scene)
    assert found.body.shape is not None
    field = sample(found.body.shape, spacing=0.5 * scene.body.spacing, margin=3)
    field.redistanced().save(path)
    return found
