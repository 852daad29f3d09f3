"""`pliant reconstruct SCENE`: one scene, filmed for the purpose or recorded, fitted in a folder."""

from pathlib import Path
from typing import Any

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.describing.scenes import ShapeFile, find_description
from pliant.app.fitted import fit_options
from pliant.app.fitted.fit_choices import require_choices
from pliant.app.fitted.fit_directory import FitDirectory
from pliant.app.fitted.fit_observations import recorded
from pliant.app.fitted.fit_values import (
    neutral_values,
    parse_unknowns,
    scene_values,
    stated_truth,
)
from pliant.app.fitted.fits import run_fit
from pliant.app.fitted.material_choice import choose_material, law_names
from pliant.app.folders.films import Film, simulated, steps_of
from pliant.app.folders.folder_lock import hold, lets_go
from pliant.app.folders.runs import RunDirectory, open_scene
from pliant.app.folders.settling import settled
from pliant.app.terminal.console import note, set_machine
from pliant.core.errors import BadInput
from pliant.inverse.fitting.fitter import FitOptions
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.files import RECORD, load_observations, save_observations
from pliant.observe.track_files import are_tracks

USUAL = Film()


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
    film: Film = USUAL,
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
    if observations is None and film.kind == "points" and cost == "depth":
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
            "cameras": film.cameras, "pixels": film.pixels, "noise": film.noise, "seed": film.seed,
            "film_steps": steps_of(scene, steps),
        }  # fmt: skip
        further = ("outliers", "dropped", "quantisation", "kind")
        asked |= {n: v for n in further if (v := getattr(film, n)) != getattr(USUAL, n)}
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
            from pliant.app.pictures.report import write_report  # which draws

            result["report"] = str(write_report(done, directory.path, showcase=showcase))
        directory.write_result(result)
        return result


def _require_fittable(scene, starts, options: dict[str, Any], *, cost: str, loss: str) -> None:
    """Complain about options before anything is simulated or written."""
    how = FitOptions(cost=cost, loss=loss, **options)
    members = tuple(make_unknown(n, v, scene) for n, v in starts.items())
    UnknownSet(members, how.priors or {}, how.bounds or {})


def _filmed(scene, name, film, directory, steps):
    if not (directory.seen_path / RECORD).is_file():
        note(
            f"No --observations: {name} is simulated with its own values, which are the truth "
            f"here, and filmed by {film.cameras} cameras with noise "
            f"{film.noise.replace('voxel', ' voxel')}."
        )
        save_observations(film.take(simulated(scene, steps, name)), directory.seen_path)
    return load_observations(directory.seen_path)  # as a resumed fit finds it, to the bit
