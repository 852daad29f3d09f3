"""`pliant demo`: the main job, without any options needed."""

import time
from typing import Annotated

import typer

from pliant.app.commands.reconstruct import result_lines
from pliant.app.terminal.console import (
    DeviceOption,
    JsonOption,
    ThreadsOption,
    answer,
    command,
    note,
)

UNKNOWNS = ["youngs_modulus=2200", "poisson_ratio=0.32"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(run_demo)


@command
def run_demo(
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Where to leave the files.")
    ] = "runs/demo",
    scene: Annotated[
        str, typer.Option("--scene", hidden=True, help="Another scene, for tests.")
    ] = "torus",
    pixels: Annotated[int, typer.Option("--pixels", hidden=True)] = 100,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Film a swinging torus with ten noisy depth cameras and recover what it is made of."""
    from pliant.app.fitted.fit_command import reconstruct_into
    from pliant.app.fitted.fit_directory import FitDirectory
    from pliant.app.folders.films import Film

    began = time.perf_counter()
    finished = FitDirectory(out).status() == "finished"
    result = reconstruct_into(
        scene, out=out, unknown=UNKNOWNS, film=Film(pixels=pixels), showcase=True,
        overwrite=finished, device=device, threads=threads,
    )  # fmt: skip
    result["demo_seconds"] = time.perf_counter() - began
    note(f"The demo took {result['demo_seconds']:.0f} s.")
    lines = [*result_lines(result), f"picture: {out}/demo.png"]
    answer(result, lines, as_json=as_json)
