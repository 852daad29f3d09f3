"""`pliant reconstruct FILE` where FILE lists experiments: all of them in one fit."""

from pathlib import Path
from typing import Any

from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.fitted import fit_options, joint_fits
from pliant.app.fitted.fit_choices import require_choices
from pliant.app.fitted.fit_values import stated_truth
from pliant.app.folders.folder_lock import hold, lets_go
from pliant.app.folders.settling import settled
from pliant.app.pictures.opinion_picture import draw_opinions
from pliant.app.terminal.console import note, set_machine
from pliant.core.errors import BadInput
from pliant.inverse.fitting.fitter import FitOptions
from pliant.inverse.joint.sharing import share, with_all_places


@lets_go
def reconstruct_jointly(
    name: str,
    *,
    out: str | None,
    unknown: list[str],
    cost: str,
    loss: str,
    priors: list[str],
    bounds: list[str],
    how: dict[str, Any],
    fineness: Fineness = AS_IT_IS,
    overwrite: bool = False,
    device: str = "cpu",
    threads: int | None = None,
) -> dict[str, Any]:
    """The work of the command for a file of experiments; returns what result.json holds."""
    require_choices(cost, loss)
    file = joint_fits.read_joint_file(name)
    asked: dict[str, Any] = fit_options.merge(file, how)
    asked |= {
        "priors": fit_options.parse_priors(file, priors),
        "bounds": fit_options.parse_bounds(file, bounds),
    }
    if asked.get("field") is not None or asked.get("field_parts"):
        raise BadInput(f"{name}: a field is fitted to one experiment at a time.")
    options: dict[str, Any] = {**fit_options.reconstruct_options(asked), "cost": cost, "loss": loss}
    directory = joint_fits.JointDirectory(out or Path("runs") / f"{Path(name).stem}-fit")
    directory.require_usable()
    hold(directory.path)
    set_machine(device, threads)
    scenes = joint_fits.scenes_of(file, fineness)
    starts = joint_fits.joint_starts(file, unknown, scenes)
    asked |= {
        "unknowns": starts, "cost": cost, "loss": loss,
        joint_fits.EXPERIMENTS: [
            table | {"name": x.name}
            for x, table in zip(scenes, file[joint_fits.EXPERIMENTS], strict=True)
        ],
    }  # fmt: skip
    going_on = directory.exists and not overwrite
    if going_on:
        directory.require_all_same(scenes, asked)
        if directory.status() == "finished":
            note(f"{directory.path}: is finished already; --overwrite would fit again.")
            return directory.result()
    experiments = joint_fits.watched(scenes, file, starts)
    known = FitOptions(**options)
    every, sure = with_all_places(experiments, starts, known.priors)
    share(experiments, every, sure, known.bounds or {})  # complains before anything is written
    if not going_on and directory.exists:
        directory.clear()
    with settled(directory, new=not going_on):
        if not going_on:
            directory.begin_all(experiments, asked)
        truth = stated_truth(Path(file[joint_fits.EXPERIMENTS][0]["observations"]))
        fit, result = joint_fits.run_joint_fit(experiments, starts, directory, options, truth)
        draw_opinions(fit, directory.path / joint_fits.PICTURE)
        result["picture"] = str(directory.path / joint_fits.PICTURE)
        directory.write_result(result)
        return result
