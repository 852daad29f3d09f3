"""`pliant predict`: how well a fit foretells a recording that it never saw."""

from pathlib import Path
from typing import Annotated

import typer

from pliant.app.describing.fineness import Fineness
from pliant.app.fitted.fit_choices import require_choices
from pliant.app.terminal.console import (
    AcrossOption,
    DeviceOption,
    JsonOption,
    SpacingOption,
    ThreadsOption,
    answer,
    command,
    set_machine,
)
from pliant.app.terminal.film_options import (
    CostOption,
    CropOption,
    FrameRateOption,
    LossOption,
    UnitsOption,
)
from pliant.core.errors import BadInput


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(foretell)


@command
def foretell(
    fit: Annotated[
        str, typer.Argument(metavar="FIT", help="The folder of a finished `pliant reconstruct`.")
    ],
    scene: Annotated[
        str,
        typer.Option("--scene", metavar="OTHER", help="What was recorded now: name or TOML file."),
    ],
    observations: Annotated[
        str,
        typer.Option(
            "--observations", metavar="DIR", help="That recording: frames, or tracked points."
        ),
    ],
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            "--unknown",
            metavar="NAME=START",
            help="What is not known of this recording or its start, fitted to it with the material "
            "held, for example time_offset; repeat it.",
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option("--prior", metavar="LABEL=MEAN+-SIGMA", help="On one of these; repeat it."),
    ] = None,
    cost: CostOption = "auto",
    loss: LossOption = "huber",
    units: UnitsOption = None,
    frame_rate: FrameRateOption = None,
    crop: CropOption = None,
    register_film: Annotated[
        bool,
        typer.Option("--register/--no-register", help="Lay a depth film onto the shape first."),
    ] = True,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="For the picture; FIT's name and -prediction."),
    ] = None,
    spacing: SpacingOption = None,
    cells_across: AcrossOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = None,
) -> None:
    """Foretell a recording of another scene with the material that the fit in FIT found."""
    from pliant.app.describing.scenes import find_description
    from pliant.app.fitted import fit_options, predictions
    from pliant.app.fitted.fit_observations import recorded
    from pliant.app.fitted.fit_values import parse_unknowns
    from pliant.app.folders.runs import open_scene
    from pliant.app.pictures.prediction_picture import draw_prediction
    from pliant.core.files import write_json
    from pliant.inverse.fitting.prediction import predict
    from pliant.inverse.parameters.priors import Prior
    from pliant.observe.track_files import are_tracks

    require_choices(cost, loss)
    if not (Path(observations).is_dir() or are_tracks(observations)):
        raise BadInput(f"{observations}: there is no such folder of observations.")
    own = Path(fit).absolute().name
    folder = predictions.prediction_folder(out or Path("runs") / f"{own}-prediction")
    known, result = predictions.read_fit(fit)
    set_machine(device, threads)
    other = open_scene(Fineness(spacing, cells_across).of(find_description(scene)), None, scene)
    other = predictions.with_law(other, result)
    held = {m.name: m.start for m in known.members(other)[0]}
    starts = parse_unknowns(unknown, other, away=False) if unknown else {}
    for name in held.keys() & starts.keys():
        raise BadInput(f"--unknown {name}: the fit has found it, and it is held.")
    priors = {k: Prior.parse(v) for k, v in fit_options.parse_priors({}, prior or []).items()}
    asked = {"observations": observations, "units": units, "frame_rate": frame_rate, "crop": crop}
    seen = recorded(other, asked | {"unknowns": held | starts})
    found = predict(
        known, other, seen, unknowns=starts, priors=priors, cost=cost, loss=loss,
        registers=register_film,
    )  # fmt: skip
    told = predictions.prediction_result(found) | {"fit": fit, "scene": scene, "out": str(folder)}
    folder.mkdir(parents=True, exist_ok=True)
    draw_prediction(found, folder / predictions.PICTURE)
    told["picture"] = str(folder / predictions.PICTURE)
    write_json(folder / predictions.RECORD, told)
    answer(told, [*found.lines(), f"picture: {told['picture']}"], as_json=as_json)
