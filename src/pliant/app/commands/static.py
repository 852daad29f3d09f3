"""`pliant static`: a scene at rest under its loads."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import find_description
from pliant.app.folders.run_directory import open_scene
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    SceneArgument,
    ShapeOption,
    SpacingOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("static")(rest_scene)


@command
def rest_scene(
    scene: SceneArgument,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Leave rest.vtu and rest.png here.")
    ] = None,
    shape: ShapeOption = None,
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
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Find where SCENE comes to rest."""
    from pliant.dynamics.statics import solve_static_recorded

    if not 0.0 < tolerance < 1.0:
        raise BadInput(f"--tolerance must lie between 0 and 1, not {tolerance}.")
    fineness = Fineness(spacing, cells_across)
    description = fineness.of(find_description(scene, shape=shape))
    folder = Path(out) if out is not None else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    set_machine(device, threads)
    built = require_elastic(open_scene(description, None, scene), "pliant static")
    if unloaded_to is not None:
        built = _without_loads(built, Path(unloaded_to))
    u, record = solve_static_recorded(built, tolerance=tolerance)
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
        f"largest displacement {size[most]:.6g} m at "
        f"({', '.join(f'{c:.4g}' for c in built.body.nodes[most])})",
    ]
    if folder is not None:
        from pliant.app.folders.export import write_frame
        from pliant.app.pictures.picture import render, save_png

        folder.mkdir(parents=True, exist_ok=True)
        stress = built.stress().at(u).von_mises
        write_frame(folder / "rest.vtu", built.body, u, stress=stress)
        save_png(folder / "rest.png", render(built, built.body.nodes + u))
        lines.append(f"files in {folder}: rest.vtu, rest.png")
        result["out"] = str(folder)
    if unloaded_to is not None:
        lines.append(f"without its loads: {unloaded_to}")
        result["unloaded"] = unloaded_to
    answer(result, lines, as_json=as_json)


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
