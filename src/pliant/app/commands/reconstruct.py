"""`pliant reconstruct`: what a body is made of, from what depth cameras saw."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pliant.app.commands.observe import (
    CamerasOption,
    DroppedOption,
    KindOption,
    NoiseOption,
    OutliersOption,
    PixelsOption,
    QuantisationOption,
    SeedOption,
    StepsOption,
)
from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.describing.scenes import ShapeFile
from pliant.app.fitted.fit_choices import COSTS, LOSSES, require_choices
from pliant.app.folders.folder_lock import hold, lets_go
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
    note,
    set_machine,
    stop,
)
from pliant.core.errors import BadInput
from pliant.core.lengths import length

UnknownOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        metavar="NAME=START",
        help="What to recover and where to start, for example youngs_modulus=2200; repeat it. "
        "By default Young's modulus and Poisson's ratio. Of the recording: time_offset, "
        "recording_pose, camera_pose.0, depth_scale, depth_offset.",
    ),
]
CostOption = Annotated[str, typer.Option("--cost", help=f"{', '.join(COSTS)}.")]


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
    loss: Annotated[str, typer.Option("--loss", help=f"{', '.join(LOSSES)}.")] = "huber",
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
    units: Annotated[
        str | None, typer.Option("--units", help="Of the recorded points: m, dm, cm, mm, in.")
    ] = None,
    frame_rate: Annotated[
        float | None, typer.Option("--frame-rate", help="Frames per second of the recording.")
    ] = None,
    crop: Annotated[
        float | None,
        typer.Option(
            "--crop", help="Drop recorded points farther from the motion than this, in metres."
        ),
    ] = None,
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
    from pliant.app.fitted.joint_command import reconstruct_jointly
    from pliant.app.fitted.joint_fits import is_joint

    how = {
        "optimiser": optimiser, "field": field, "field_weight": field_weight,
        "field_parts": field_parts, "multi_start": multi_start, "coarse_to_fine": coarse_to_fine,
        "discretisation": discretisation, "register": register_film, "search": search,
        "density_known_to": density_known_to, "memory_limit_mb": memory_limit,
        "max_iterations": max_iterations,
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
        result = reconstruct_jointly(
            scene, out=out, unknown=unknown or [], cost=cost, loss=loss, priors=prior or [],
            bounds=bound or [], how=how, fineness=Fineness(spacing, cells_across),
            overwrite=overwrite, device=device, threads=threads,
        )  # fmt: skip
        return _answered(result, as_json)
    result = reconstruct_into(
        scene, observations=observations, unknown=unknown or [], out=out, cost=cost, loss=loss,
        units=units, frame_rate=frame_rate, crop=crop, cameras=cameras, pixels=pixels, noise=noise,
        seed=seed, outliers=outliers, dropped=dropped, quantisation=quantisation, kind=kind,
        steps=steps, shape=ShapeFile.asked(shape, shape_units),
        fineness=Fineness(spacing, cells_across), report=report, overwrite=overwrite, device=device,
        threads=threads, fit_file=fit_file, priors=prior or [], bounds=bound or [],
        how=how, materials=materials,
    )  # fmt: skip
    _answered(result, as_json)


def _answered(result: dict[str, Any], as_json: bool) -> None:
    """Print the result, and end with an error where it is no success."""
    from pliant.app.fitted.material_choice import ranking_lines

    lines = ranking_lines(result) if "materials" in result else result_lines(result)
    answer(result, lines, as_json=as_json)
    if not result.get("converged", True):
        stop(f"The fit is no success. {' '.join(result.get('reasons', []))}", FAILED)


@lets_go
def reconstruct_into(
    name: str,
    *,
    out: str | None,
    observations: str | None = None,
    unknown: list[str],
    cost: str = "auto",
    loss: str = "huber",
    units: str | None = None,
    frame_rate: float | None = None,
    crop: float | None = None,
    cameras: int = 10,
    pixels: int = 100,
    noise: str = "0.5voxel",
    seed: int = 1,
    outliers: float = 0.0,
    dropped: float = 0.0,
    quantisation: float = 0.0,
    kind: str = "depth",
    steps: int | None = None,
    shape: ShapeFile | None = None,
    fineness: Fineness = AS_IT_IS,
    report: bool = True,
    showcase: bool = False,
    overwrite: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    fit_file: str | None = None,
    priors: list[str] | None = None,
    bounds: list[str] | None = None,
    how: dict[str, Any] | None = None,
    materials: str | None = None,
) -> dict[str, Any]:
    """The work of the command; returns what result.json holds. showcase: leave demo.png too."""
    from pliant.app.describing.scenes import find_description
    from pliant.app.fitted import fit_options
    from pliant.app.fitted.fit_observations import recorded
    from pliant.app.fitted.fit_values import (
        neutral_values,
        parse_unknowns,
        scene_values,
        stated_truth,
    )
    from pliant.app.fitted.fits import FitDirectory, run_fit
    from pliant.app.fitted.material_choice import choose_material, law_names
    from pliant.app.folders.films import Film, steps_of
    from pliant.app.folders.runs import RunDirectory, open_scene
    from pliant.app.folders.settling import settled
    from pliant.observe.track_files import are_tracks

    require_choices(cost, loss)
    tracked = observations is not None and are_tracks(observations)
    if observations is not None and not (Path(observations).is_dir() or tracked):
        raise BadInput(f"{observations}: there is no such folder of observations.")
    if tracked and cost != "auto":
        raise BadInput(f"--cost {cost} is for films; {observations} holds tracked points.")
    if steps is not None and steps < 1:
        raise BadInput(f"--steps must be at least 1, not {steps}.")
    file = fit_options.read_fit_file(fit_file) if fit_file is not None else {}
    asked: dict[str, Any] = fit_options.merge(file, how or {})
    asked |= {
        "priors": fit_options.parse_priors(file, priors or []),
        "bounds": fit_options.parse_bounds(file, bounds or []),
    }
    options = fit_options.reconstruct_options(asked)
    film = Film(cameras, pixels, noise, seed, outliers, dropped, quantisation, kind)
    if observations is None and kind == "points" and cost == "depth":
        raise BadInput("--cost depth needs pixels, which --kind points does not have.")
    description = fineness.of(find_description(name, shape=shape))
    directory = FitDirectory(out or Path("runs") / f"{Path(name).stem}-fit")
    directory.require_usable()
    hold(directory.path)
    set_machine(device, threads)
    going_on = directory.exists and not overwrite
    scene = open_scene(description, RunDirectory(directory.path) if going_on else None, name)
    if scene.dim != 3 and not tracked:
        raise BadInput(f"{name}: is two-dimensional; depth cameras see 3D bodies only.")
    wanted = fit_options.unknown_options(file, unknown)
    if asked.get("field"):
        require_elastic(scene, "--field")
    if asked.get("field") and not wanted:
        wanted = ["youngs_modulus"]
    starts = parse_unknowns(wanted, scene, away=observations is None)
    if asked.get("field"):
        starts = fit_options.as_field(starts, scene, asked["field"])
    laws = law_names(materials) if materials is not None else []
    if laws:
        require_elastic(scene, "--materials")
    if laws and (asked["priors"] or asked["bounds"]):
        raise BadInput("--materials fits each law's own parameters: give no --prior or --bound.")
    _require_fittable(scene, starts, options, cost=cost, loss=loss)
    asked |= {"unknowns": starts, "cost": cost, "loss": loss}
    if laws:
        asked["materials"] = laws
    if observations is not None:
        asked |= {
            "observations": str(Path(observations).absolute()), "units": units,
            "frame_rate": frame_rate, "crop": crop,
        }  # fmt: skip
    else:
        asked |= {
            "cameras": cameras, "pixels": pixels, "noise": noise, "seed": seed,
            "film_steps": steps_of(scene, steps),
        }  # fmt: skip
        flaws = {"outliers": outliers, "dropped": dropped, "quantisation": quantisation}
        asked |= {name: value for name, value in flaws.items() if value}
        asked |= {"kind": kind} if kind != "depth" else {}
    if going_on:
        directory.require_same(scene, asked)
        if directory.status() == "finished":
            note(f"{directory.path}: is finished already; --overwrite would fit again.")
            return directory.result()
    truth = scene_values(scene) | neutral_values(starts)
    if observations is not None:  # before anything is written
        seen = recorded(scene, asked)
        truth = stated_truth(Path(observations))
    if not going_on and directory.exists:
        directory.clear()
    with settled(directory, new=not going_on):
        if not going_on:
            directory.begin(scene, asked)
        if observations is None:
            seen = _filmed(scene, name, film, directory, asked["film_steps"])
        if laws:
            result = choose_material(
                scene, seen, laws, directory.path, cost=cost, loss=loss, options=options
            )
            directory.write_result(result)
            return result
        if going_on and (done := directory.history()):
            note(f"{directory.path}: continued after iteration {done[-1].step.iteration}.")
        done = run_fit(
            scene, seen, starts, directory, cost=cost, loss=loss, truth=truth, options=options
        )
        result = done.result
        if report:
            from pliant.app.pictures.report import write_report

            result["report"] = str(write_report(done, directory.path, showcase=showcase))
        directory.write_result(result)
        return result


def _require_fittable(scene, starts, options: dict[str, Any], *, cost: str, loss: str) -> None:
    """Complain about options before anything is simulated or written."""
    from pliant.inverse.fitting.fitter import FitOptions
    from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

    how = FitOptions(cost=cost, loss=loss, **options)
    members = tuple(make_unknown(n, v, scene) for n, v in starts.items())
    UnknownSet(members, how.priors or {}, how.bounds or {})


def _filmed(scene, name, film, directory, steps):
    from pliant.app.folders.films import simulated
    from pliant.observe.files import RECORD, load_observations, save_observations

    if not (directory.seen_path / RECORD).is_file():
        note(
            f"No --observations: {name} is simulated with its own values, which are the truth "
            f"here, and filmed by {film.cameras} cameras with noise "
            f"{film.noise.replace('voxel', ' voxel')}."
        )
        save_observations(film.take(simulated(scene, steps, name)), directory.seen_path)
    return load_observations(directory.seen_path)  # as a resumed fit finds it, to the bit


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

    rows = table_rows(result)
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
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
