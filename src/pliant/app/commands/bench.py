"""`pliant bench`: how fast a step is, phase by phase."""

from dataclasses import replace
from typing import Annotated

import typer

from pliant.app.benchmarks import CASES, bench_scene, mapped_surface, measure
from pliant.app.terminal.console import (
    DeviceOption,
    JsonOption,
    ShapeOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench")(bench)


@command
def bench(
    case: Annotated[str, typer.Argument(metavar="CASE", help=f"One of {', '.join(CASES)}.")],
    resolution: Annotated[
        int | None,
        typer.Option("--resolution", help="Cells per metre (cuboid), or cells (tet-torus)."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Steps to measure.")] = 30,
    ground: Annotated[
        bool, typer.Option("--ground", help="The cuboid hits the ground instead of being held.")
    ] = False,
    law: Annotated[
        str | None, typer.Option("--law", help="A material law instead of linear elasticity.")
    ] = None,
    shape: ShapeOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Measure the time of a step of a benchmark CASE."""
    if steps < 1:
        raise BadInput(f"--steps must be at least 1, not {steps}.")
    set_machine(device, threads)
    scene = bench_scene(case, resolution=resolution, ground=ground, shape=shape)
    scene = replace(scene, law=law)
    mapped = mapped_surface(scene) if case == "tets" else None
    with progress(f"bench {case}", steps) as shown:
        result = measure(scene, steps, mapped=mapped, on_step=shown.reach)
    lines = [
        f"{case}: {result['cells']:,} cells, {result['nodes']:,} nodes, {steps} steps",
        f"assembly {result['assembly_ms']:.1f} ms, set-up {result['setup_ms']:.1f} ms, "
        f"solve {result['solve_ms']:.1f} ms in {result['iterations']:.1f} iterations",
        f"step {result['step_ms']:.1f} ms, peak memory {result['peak_mb']:.0f} MB",
    ]
    if mapped is not None:
        lines.append(f"mapping {result['mapped_points']:,} points {result['mapping_ms']:.1f} ms")
    answer({"case": case, **result}, lines, as_json=as_json)
