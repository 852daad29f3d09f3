"""`pliant check-gradients`: four ways to the same derivative."""

from typing import Annotated, Any

import numpy as np
import typer

from pliant.app.describing.fineness import Fineness
from pliant.app.fitted.fit_choices import COSTS
from pliant.app.folders.runs import RunFailed
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
from pliant.app.terminal.film_options import CostOption, NoiseOption, UnknownOption
from pliant.core.errors import BadInput

AGREEMENT = 1e-6
"""Adjoint against tangent: both are exact derivatives of one program; only solves are rounded."""

COMPLEX_AGREEMENT = 1e-6
"""Complex step against tangent: one is formulas of derivatives, the other has none."""

TANGENT_TOLERANCE = 1e-11
"""Of the tangents' solves here: they must not blur the comparison."""

DIFFERENCE_AGREEMENT = 1e-3
"""Against central differences, which rays that slip off the silhouette disturb."""

STEP_SIZES = (1e-3, 3e-4, 1e-4, 3e-5)
"""Of the central difference in the free coordinate; the best is taken."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check-gradients")(check_scene)


@command
def check_scene(
    scene: SceneArgument,
    unknown: UnknownOption = None,
    steps: Annotated[int, typer.Option("--steps", help="Time steps of the check.")] = 6,
    cost: CostOption = "auto",
    cameras: Annotated[int, typer.Option("--cameras", help="Cameras that film it.")] = 3,
    pixels: Annotated[int, typer.Option("--pixels", help="Width and height of an image.")] = 40,
    noise: NoiseOption = "0.1voxel",
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Compare adjoint, tangent, complex step and central difference of SCENE's cost, per unknown.

    The complex step is a NumPy copy of every time step in complex arithmetic; the cameras' part is
    shared with the tangent.
    """
    from pliant.app.describing.scenes import ShapeFile, find_description
    from pliant.app.fitted.fit_values import parse_unknowns
    from pliant.app.folders.films import Film, simulated
    from pliant.app.folders.run_directory import open_scene

    if cost not in COSTS:
        raise BadInput(f"--cost must be one of {', '.join(COSTS)}, not '{cost}'.")
    film = Film(cameras, pixels, noise, 1)
    file = ShapeFile.asked(shape, shape_units)
    description = Fineness(spacing, cells_across).of(find_description(scene, shape=file))
    set_machine(device, threads)
    built = open_scene(description, None, scene)
    starts = parse_unknowns(unknown or [], built, away=True)
    seen = film.take(simulated(built, steps, scene))
    rows, reason = compare_gradients(built, seen, starts, cost)
    result: dict[str, Any] = {"unknowns": rows, "steps": steps, "no_complex_step": reason}
    result["agree"] = all(row["agree"] for row in rows.values())
    lines = [
        f"{'unknown':<20}{'adjoint':>16}{'tangent':>16}{'complex step':>16}{'difference':>16}"
        f"{'a-t':>10}{'t-c':>10}{'t-d':>10}"
    ]
    for label, row in rows.items():
        third, apart = f"{'-':>16}", f"{'-':>10}"
        if row["complex_step"] is not None:
            third, apart = f"{row['complex_step']:>16.8g}", f"{row['tangent_complex']:>10.1e}"
        lines.append(
            f"{label:<20}{row['adjoint']:>16.8g}{row['tangent']:>16.8g}{third}"
            f"{row['difference']:>16.8g}{row['adjoint_tangent']:>10.1e}{apart}"
            f"{row['tangent_difference']:>10.1e}" + ("" if row["agree"] else "  differs")
        )
    if reason:
        lines.append(f"No complex step: {reason}")
    answer(result, lines, as_json=as_json)
    if not result["agree"]:
        wrong = ", ".join(label for label, row in rows.items() if not row["agree"])
        raise RunFailed(f"The derivatives of {wrong} do not agree: do not trust a fit of them.")


def compare_gradients(
    scene, seen, starts: dict[str, Any], cost: str
) -> tuple[dict[str, dict[str, Any]], str]:
    """Derivatives of the cost by each free coordinate (log of a modulus, say), four ways.

    Also the reason why there is no complex step, empty where there is one.
    """
    from pliant.app.describing.elastic_scenes import NotElastic, require_elastic
    from pliant.app.terminal.progress import progress
    from pliant.inverse.complex_copy.complex_motion import NotComplex, complex_runner
    from pliant.inverse.measuring.losses import Loss
    from pliant.inverse.motion.problem import Problem
    from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

    members = tuple(make_unknown(n, v, scene) for n, v in starts.items())
    unknowns = UnknownSet(members)
    problem = Problem(scene, seen, unknowns, cost=cost, tangent_tolerance=TANGENT_TOLERANCE)
    q = unknowns.start()
    loss = Loss(scene.body.spacing, "squares")
    evaluations = 3 + 2 * len(STEP_SIZES) * len(q)
    with progress("checking gradients", evaluations) as shown:
        centre = problem.evaluate(q, loss)
        shown.reach(1)
        adjoint = problem.gradient(q, loss)[1]
        shown.reach(2)
        third, reason = None, ""
        try:
            require_elastic(scene, "A step in complex numbers")
            third = problem.evaluate(q, loss, runner=complex_runner(unknowns, q)).model[1]
        except (NotComplex, NotElastic) as why:
            reason = str(why)
        shown.reach(3)
        differences = np.empty((len(STEP_SIZES), len(q)))
        done = 3
        for j, h in enumerate(STEP_SIZES):
            for i in range(len(q)):
                ends = []
                for side in (1.0, -1.0):
                    moved = q.copy()
                    moved[i] += side * h
                    e = problem.evaluate(moved, loss, derivatives=False)
                    ends.append(e.rise_from(centre))
                    done += 1
                    shown.reach(done)
                differences[j, i] = (ends[0] - ends[1]) / (2.0 * h)
    tangent = centre.model[1]
    rows = {}
    for i, label in enumerate(unknowns.labels):
        scale = max(abs(tangent[i]), 1e-9 * float(np.abs(tangent).max()), 1e-300)
        best = int(np.argmin(np.abs(differences[:, i] - tangent[i])))
        off = abs(adjoint[i] - tangent[i]) / scale
        far = abs(differences[best, i] - tangent[i]) / scale
        apart = None if third is None else float(abs(third[i] - tangent[i]) / scale)
        rows[label] = {
            "adjoint": float(adjoint[i]),
            "tangent": float(tangent[i]),
            "complex_step": None if third is None else float(third[i]),
            "difference": float(differences[best, i]),
            "step": STEP_SIZES[best],
            "adjoint_tangent": float(off),
            "tangent_complex": apart,
            "tangent_difference": float(far),
            "agree": bool(
                off < AGREEMENT
                and far < DIFFERENCE_AGREEMENT
                and (apart or 0.0) < COMPLEX_AGREEMENT
            ),
        }
    return rows, reason
