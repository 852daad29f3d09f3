"""`pliant reconstruct`: what a body is made of, from what depth cameras saw."""

from typing import Annotated, Any

import typer

from pliant.app.describing.fineness import Fineness
from pliant.app.describing.scenes import ShapeFile
from pliant.app.terminal.console import (
    FAILED,
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
    stop,
)
from pliant.app.terminal.film_options import (
    CamerasOption,
    CostOption,
    CropOption,
    DroppedOption,
    FrameRateOption,
    KindOption,
    LossOption,
    NoiseOption,
    OutliersOption,
    PixelsOption,
    QuantisationOption,
    SeedOption,
    StepsOption,
    UnitsOption,
    UnknownOption,
)
from pliant.core.errors import BadInput
from pliant.core.lengths import length


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reconstruct")(reconstruct_scene)


@command
def reconstruct_scene(
    scene: SceneArgument,
    observations: Annotated[
        str | None,
        typer.Option(
            "--observations",
            metavar="DIR",
            help="The recording: a folder of frames, or tracked points (CSV, C3D, tracks.toml); "
            "if not given, SCENE is filmed.",
        ),
    ] = None,
    unknown: UnknownOption = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="The fit's folder; runs/SCENE-fit by default."),
    ] = None,
    cost: CostOption = "auto",
    loss: LossOption = "huber",
    optimiser: Annotated[
        str | None,
        typer.Option("--optimiser", help="auto, lm, gncg (fields), lbfgs or bb (descent)."),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior", metavar="LABEL=MEAN+-SIGMA", help="Or LABEL=MEAN*/FACTOR; repeat it."
        ),
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option("--bound", metavar="LABEL=LOW,HIGH", help="Limits of a value; repeat it."),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option("--field", help="A Young's modulus for every cell, smoothed by: tv, smooth."),
    ] = None,
    field_weight: Annotated[
        float | None, typer.Option("--field-weight", help="Weight of that penalty.")
    ] = None,
    field_parts: Annotated[
        bool | None,
        typer.Option(
            "--field-parts/--no-field-parts", help="Cut the field into parts and fit these again."
        ),
    ] = None,
    multi_start: Annotated[
        int | None, typer.Option("--multi-start", help="How many starts to try first.")
    ] = None,
    coarse_to_fine: Annotated[
        bool | None,
        typer.Option(
            "--coarse-to-fine/--no-coarse-to-fine",
            help="Begin at twice the spacing; by default where the start is far off.",
        ),
    ] = None,
    discretisation: Annotated[
        bool | None,
        typer.Option(
            "--discretisation/--no-discretisation",
            help="Estimate the errors by grid and time step from coarser repeats; by default yes.",
        ),
    ] = None,
    register_film: Annotated[
        bool | None,
        typer.Option(
            "--register/--no-register",
            help="Lay a depth film onto the shape by its first frame, if it is off; by default "
            "yes.",
        ),
    ] = None,
    search: Annotated[
        bool | None,
        typer.Option(
            "--search/--no-search",
            help="Try stiffnesses up to 300 times larger and smaller where the start is far off; "
            "by default yes.",
        ),
    ] = None,
    density_known_to: Annotated[
        float | None,
        typer.Option(
            "--density-known-to",
            metavar="SHARE",
            help="How well a density is known that is not fitted, for the total error bar: 0.1 by "
            "default, 0.01 for a body that was weighed.",
        ),
    ] = None,
    memory_limit: Annotated[
        float | None,
        typer.Option("--memory-limit", metavar="MB", help="Of stored states in gradients."),
    ] = None,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", help="Of the optimiser.")
    ] = None,
    fit_file: Annotated[
        str | None,
        typer.Option(
            "--fit-file", metavar="TOML", help="Unknowns, priors, bounds and optimiser in a file."
        ),
    ] = None,
    units: UnitsOption = None,
    frame_rate: FrameRateOption = None,
    crop: CropOption = None,
    materials: Annotated[
        str | None,
        typer.Option(
            "--materials", metavar="LAW,LAW", help="Fit these laws and rank them by AIC and BIC."
        ),
    ] = None,
    cameras: CamerasOption = 10,
    pixels: PixelsOption = 100,
    noise: NoiseOption = "0.5voxel",
    seed: SeedOption = 1,
    outliers: OutliersOption = 0.0,
    dropped: DroppedOption = 0.0,
    quantisation: QuantisationOption = 0.0,
    kind: KindOption = "depth",
    steps: StepsOption = None,
    shape: ShapeOption = None,
    shape_units: ShapeUnitsOption = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Leave report.html and its pictures.")
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a fit that is there already.")
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Recover unknown values of SCENE from a recording; an interrupted fit in DIR is continued.

    SCENE may be a file with [[experiments]], which are then fitted jointly.
    """
    from pliant.app.fitted.fit_command import reconstruct_into
    from pliant.app.fitted.joint_command import reconstruct_jointly
    from pliant.app.fitted.joint_fits import is_joint
    from pliant.app.folders.films import Film

    how = {
        "optimiser": optimiser, "field": field, "field_weight": field_weight,
        "field_parts": field_parts, "multi_start": multi_start, "coarse_to_fine": coarse_to_fine,
        "discretisation": discretisation, "register": register_film, "search": search,
        "density_known_to": density_known_to, "memory_limit_mb": memory_limit,
        "max_iterations": max_iterations,
    }  # fmt: skip
    both: dict[str, Any] = {
        "out": out, "unknown": unknown or [], "cost": cost, "loss": loss, "priors": prior or [],
        "bounds": bound or [], "how": how, "fineness": Fineness(spacing, cells_across),
        "overwrite": overwrite, "device": device, "threads": threads,
    }  # fmt: skip
    if is_joint(scene):
        alone = {
            "--observations": observations, "--fit-file": fit_file, "--field": field,
            "--materials": materials, "--shape": shape, "--units": units, "--crop": crop,
            "--frame-rate": frame_rate, "--steps": steps,
        }  # fmt: skip
        for option, value in alone.items():
            if value is not None:
                raise BadInput(f"{scene}: lists experiments, and {option} is for one scene.")
        result = reconstruct_jointly(scene, **both)
    else:
        result = reconstruct_into(
            scene, observations=observations, units=units, frame_rate=frame_rate, crop=crop,
            film=Film(cameras, pixels, noise, seed, outliers, dropped, quantisation, kind),
            steps=steps, shape=ShapeFile.asked(shape, shape_units), report=report,
            fit_file=fit_file, materials=materials, **both,
        )  # fmt: skip
    _answered(result, as_json)


def _answered(result: dict[str, Any], as_json: bool) -> None:
    """Print the result, and end with an error where it is no success."""
    from pliant.app.fitted.material_choice import ranking_lines

    lines = ranking_lines(result) if "materials" in result else result_lines(result)
    answer(result, lines, as_json=as_json)
    if not result.get("converged", True):
        stop(f"The fit is no success. {' '.join(result.get('reasons', []))}", FAILED)


def _extrapolated(result: dict[str, Any]) -> list[str]:
    """The values at spacing and time step zero, where repeats tell."""
    known = {n: u["extrapolated"] for n, u in result["unknowns"].items() if u.get("extrapolated")}
    if not known:
        return []
    told = ", ".join(f"{name} {value:.5g}" for name, value in known.items())
    return [f"extrapolated to spacing and time step zero: {told}"]


def _metres(value: float | None) -> str:
    return "unknown" if value is None else length(value)


def result_lines(result: dict[str, Any]) -> list[str]:
    """The table, the advice and where the files are."""
    from pliant.app.fitted.fit_table import table_rows
    from pliant.inverse.fitting.fit import in_columns

    lines = in_columns(table_rows(result))
    if result.get("experiments"):
        lines += ["", *result["table"].splitlines(), ""]
    lines += [f"- {line}" for line in result["advice"]]
    ended = "" if result["converged"] else ", no success"
    lines += _extrapolated(result)
    lines.append(
        f"{result['iterations']} iterations in {result['seconds']:.1f} s{ended}; "
        f"residuals {_metres(result['rms'])}, noise {_metres(result['noise'])}"
    )
    if result.get("picture"):
        lines.append(f"picture: {result['picture']}")
    if "report" in result:
        lines.append(f"report: {result['report']}")
    return lines
