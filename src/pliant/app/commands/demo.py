"""`pliant demo`: the most telling run, without any options needed."""

from typing import Annotated

import typer

from pliant.app.commands.simulate import simulate_into
from pliant.app.console import DeviceOption, JsonOption, ThreadsOption, answer, command


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(run_demo)


@command
def run_demo(
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Where to leave the files.")
    ] = "runs/demo",
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Drop a soft torus on a slope; leaves a picture, an animation and ParaView files."""
    result = simulate_into("drop", out=out, device=device, threads=threads)
    lines = [
        f"A torus of {result['nodes']} nodes dropped for {result['time']:.3g} s.",
        f"Look at {out}/final.png and {out}/motion.gif; ParaView opens {out}/trajectory.pvd.",
    ]
    answer(result, lines, as_json=as_json)
