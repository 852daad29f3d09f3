"""Options of the commands that film a scene, or that compare it with a recording."""

from typing import Annotated

import typer

from pliant.app.fitted.fit_choices import COSTS, LOSSES

CamerasOption = Annotated[int, typer.Option("--cameras", help="Cameras in a ring around it.")]
PixelsOption = Annotated[int, typer.Option("--pixels", help="Width and height of an image.")]
NoiseOption = Annotated[
    str,
    typer.Option("--noise", help="Depth noise: 0.5voxel (times the grid's spacing), 0.01 or 10mm."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of the noise.")]
OutliersOption = Annotated[float, typer.Option("--outliers", help="Share of wild pixels.")]
DroppedOption = Annotated[float, typer.Option("--dropped", help="Share of lost pixels.")]
QuantisationOption = Annotated[
    float, typer.Option("--quantisation", help="Step of the depth in metres; 0: none.")
]
KindOption = Annotated[
    str,
    typer.Option(
        "--kind",
        help="depth: noise along each pixel's ray; points: in every direction, without pixels.",
    ),
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="Time steps; the scene's own if not given.")
]
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
LossOption = Annotated[str, typer.Option("--loss", help=f"{', '.join(LOSSES)}.")]
UnitsOption = Annotated[
    str | None, typer.Option("--units", help="Of the recorded points: m, dm, cm, mm, in.")
]
FrameRateOption = Annotated[
    float | None, typer.Option("--frame-rate", help="Frames per second of the recording.")
]
CropOption = Annotated[
    float | None,
    typer.Option(
        "--crop", help="Drop recorded points farther from the motion than this, in metres."
    ),
]
