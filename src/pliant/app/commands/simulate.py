"""`pliant simulate`: a scene over time, into a run directory."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.describing.scenes import ShapeFile, find_description
from pliant.app.folders.folder_lock import hold, lets_go
from pliant.app.folders.runs import (
    Interrupted,
    RunDirectory,
    RunFailed,
    describe,
    export_frames,
    open_scene,
    run_scene,
    summary,
)
from pliant.app.folders.settling import settled
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
    note,
    set_machine,
)
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.lengths import length
from pliant.dynamics.model import Model
from pliant.dynamics.scene import Scene

FRAMES_SHOWN = 60
"""Most frames of an animation; longer runs are thinned out."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate_scene)


@command
def simulate_scene(
    scene: SceneArgument,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="The run directory; runs/SCENE if not given."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Time steps in all; the scene's own if not given.")
    ] = None,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    every: Annotated[int, typer.Option("--every", help="Save every K-th step.")] = 1,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Leave final.png and motion.gif.")
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run that is there already.")
    ] = False,
    energy_check: Annotated[
        bool,
        typer.Option(
            "--energy-check/--no-energy-check", help="Stop when energy appears from nowhere."
        ),
    ] = True,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Simulate SCENE; an interrupted run of the same scene in DIR is continued."""
    result = simulate_into(
        scene, out=out, steps=steps, shape=ShapeFile.asked(shape, shape_units),
        fineness=Fineness(spacing, cells_across), every=every, pictures=pictures,
        overwrite=overwrite, device=device, threads=threads, energy_check=energy_check,
    )  # fmt: skip
    lines = [
        f"{result['title'] or scene}: {result['nodes']} nodes, {result['steps']} steps "
        f"to t = {result['time']:.4g} s, {result['step_ms']:.1f} ms a step",
        f"largest displacement {length(result['largest_displacement'], 4)} "
        f"({result['largest_displacement_in_cells']:.1f} cells)",
        energy_line(result["energies"]),
        *cut_lines(result["steps_cut"]),
        *result["warnings"],
        *filter(None, [result.get("model_told")]),
        f"files in {result['out']}" + (": final.png, motion.gif, trajectory.pvd" * pictures),
    ]
    answer(result, lines, as_json=as_json)


def energy_line(energies: dict[str, float]) -> str:
    """Where the energy is at the end."""
    stored = ", ".join(
        f"{name} {energies[name]:.3g}" for name in ("kinetic", "elastic", "gravity", "contact")
    )
    words = {"damping": "damping", "rubbing": "contact", "scheme": "scheme"}
    taken = ", ".join(f"{word} {energies[name]:.3g}" for name, word in words.items())
    return f"energies [J]: {stored}; taken by {taken}; given by loads {energies['loads']:.3g}"


def cut_lines(cut: list[dict[str, Any]]) -> list[str]:
    """What to know about steps that were cut into parts."""
    if not cut:
        return []
    most = max(c["parts"] for c in cut)
    return [
        f"{len(cut)} steps were too long for Newton's method or would have turned cells inside "
        f"out, the first at t = {cut[0]['t']:.4g} s; they were taken in up to {most} parts: a "
        "smaller time step may be quicker"
    ]


@lets_go
def simulate_into(
    name: str,
    *,
    out: str | None,
    steps: int | None = None,
    shape: ShapeFile | None = None,
    fineness: Fineness = AS_IT_IS,
    every: int = 1,
    pictures: bool = True,
    overwrite: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    energy_check: bool = True,
) -> dict[str, Any]:
    """The work of the command; returns what result.json holds."""
    if steps is not None and steps < 0:
        raise BadInput(f"--steps must not be negative, not {steps}.")
    if every < 1:
        raise BadInput(f"--every must be at least 1, not {every}.")
    description = fineness.of(find_description(name, shape=shape))
    directory = RunDirectory(out or Path("runs") / Path(name).stem)
    directory.require_usable()
    hold(directory.path)
    set_machine(device, threads)
    scene = open_scene(description, None if overwrite else directory, name)
    wanted = int((scene.source or {})["steps"]) if steps is None else steps
    complete, digest = describe(scene)
    going_on = directory.exists and not overwrite
    if going_on:
        directory.require_same(complete, digest)
    # regions that touch nothing, and bodies too large, are found here: before anything is written
    system = _system(scene, name)
    if overwrite and directory.exists:
        directory.clear()
    with settled(directory, new=not going_on):
        if not going_on:
            directory.begin(scene, digest)
        return _run(
            scene, system, directory, name, digest=digest, wanted=wanted, every=every,
            pictures=pictures, energy_check=energy_check,
        )  # fmt: skip


def _run(
    scene: Scene,
    system: Model,
    directory: RunDirectory,
    name: str,
    *,
    digest: str,
    wanted: int,
    every: int,
    pictures: bool,
    energy_check: bool,
) -> dict[str, Any]:
    """Simulate into a directory that is begun, whatever it holds already."""
    last = directory.last_state(scene.body.nodes.shape)
    begun = last.step if last is not None else 0
    if begun >= wanted and begun > 0:
        note(f"{directory.path}: has {begun} steps already; --steps {begun + 1} would go on.")
    elif begun > 0:
        note(f"{directory.path}: continued from step {begun}.")

    def finish(status: str) -> dict[str, Any]:
        result = summary(scene, directory, status, digest)
        export_frames(scene, directory)
        directory.write_result(result)  # last: what it says is there
        return result

    try:
        with progress(f"simulating {name}", wanted, begun) as shown:
            run_scene(
                scene, directory, steps=wanted, every=every, progress=shown.reach, system=system,
                energy_check=energy_check,
            )  # fmt: skip
    except Interrupted:
        at = finish("interrupted")["steps"]
        raise Interrupted(
            f"Interrupted after step {at} of {wanted}; the state is saved in {directory.path}: "
            "run the same command again to go on."
        ) from None
    except RunFailed as failure:
        at = finish("failed")["steps"]
        hint = " --no-energy-check goes on." if "nowhere" in str(failure) else ""
        raise RunFailed(
            f"{failure}{hint} The last good state, step {at}, is saved in {directory.path}."
        ) from None
    result = finish("finished")
    if pictures:
        draw_run(scene, directory)
    return result


def _system(scene: Scene, name: str) -> Model:
    try:
        return scene.make_model()
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error


def draw_run(scene: Scene, directory: RunDirectory, *, width: int = 640, height: int = 480) -> None:
    """final.png and motion.gif from the saved steps."""
    from pliant.app.pictures.picture import Studio, save_gif, save_png

    steps = directory.saved_steps()
    chosen = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), FRAMES_SHOWN)).round())
    states = [directory.read_state(steps[int(i)]) for i in chosen]
    nodes = scene.body.nodes
    studio = Studio(scene, [nodes + s.u for s in states], width=width, height=height)
    frames = []
    with progress("drawing", len(states)) as shown:
        for s in states:
            frames.append(studio.picture(nodes + s.u, time=s.t))
            shown.reach(len(frames))
    save_png(directory.path / "final.png", frames[-1])
    span = states[-1].t - states[0].t
    # at half the speed at which it happened, but neither too short to see nor too long to wait
    seconds = float(np.clip(2.0 * span, 2.0, 8.0)) / len(frames)
    save_gif(directory.path / "motion.gif", frames, seconds=seconds)
