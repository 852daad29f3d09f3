"""The real beam of real_beam.py: its scene, and its recordings laid onto it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import pliant as pl
from pliant.observe.tracks import rigid_fit

MARKERS = {
    "tip1": (0.0, 0.015, 0.036), "tip2": (0.0, -0.006, 0.024), "tip3": (0.0, 0.036, 0.006),
    "base1": (-0.094, -0.010, -0.001), "base2": (-0.094, 0.040, 0.0275),
    "base3": (-0.094, 0.040, 0.0),
}  # fmt: skip
"""Nominal places [m]; they are known to about a millimetre."""

TIPS = ("tip1", "tip2", "tip3")
ON_BEAM = ((0.0, 0.015, 0.03), (0.0, 0.0, 0.024), (0.0, 0.03, 0.006))
LEVEL = slice(20, 40)
"""Frames in which a hand held the beam level."""

DECAY = (0.83, 1.63)
"""Seconds of the gravity run that are fitted: six periods after the hand has gone."""

REFERENCE = pl.Material(2.2e5, 0.499, 1070.0)
"""Whose modes the start is counted in."""

HUNG = pl.PointMass(
    0.052, region=pl.shapes.box(center=(0.0, 0.015, 0.03), size=(0.002, 0.1, 0.002))
)


def beam(*attached: pl.PointMass, spacing: float = 0.0075, modulus: float = 2.6e5, **options):
    """The beam with its markers' weight, 0.6 g, and what else hangs from it."""
    box = pl.shapes.box(center=(-0.05, 0.015, 0.015), size=(0.1, 0.03, 0.03))
    face = pl.shapes.box(center=(-0.1, 0.015, 0.015), size=(2e-4, 0.1, 0.1))
    return pl.Scene(
        pl.GridBody(box, spacing=spacing),
        pl.Material(modulus, 0.499, 1070.0, stiffness_damping=2e-3),
        gravity=(0.0, 0.0, -9.80709),
        fixed=[pl.Fixed(face)],
        attached=[*(pl.PointMass(2e-4, point) for point in ON_BEAM), *attached],
        integrator=pl.GeneralisedAlpha(0.0025),
        **options,
    )


def recording(data: Path, name: str) -> pl.TrackedPoints:
    """A run's markers, laid onto their nominal places while the beam was level."""
    tracks = pl.load_tracks(data / f"beam_{name}_V2_a_lab.csv")
    nominal = np.array([MARKERS[n] for n in tracks.names])
    turn, shift = rigid_fit(tracks.positions[LEVEL].mean(axis=0), nominal)
    return replace(tracks.moved(turn, shift), at=nominal, at_sigma=1e-3)


def resting(data: Path, name: str, *attached: pl.PointMass) -> pl.Experiment:
    """Where the markers came to rest, against where they were held."""
    run = recording(data, name).only(*TIPS)
    rest = run.positions[-20:].mean(axis=0)
    seen = pl.TrackedPoints(
        [0.0], rest[None], at=run.positions[LEVEL].mean(axis=0), sigma=5e-4, names=TIPS
    )
    return pl.Experiment(beam(*attached, start="equilibrium"), seen, name)


def frequency(scene: pl.Scene) -> float:
    """Of a small undamped swing about the balance [Hz]."""
    undamped = replace(scene.material, stiffness_damping=0.0)
    start = pl.Start("state", modes=2, amplitudes=(5e-4, 5e-4))
    run = pl.simulate(replace(scene, material=undamped, start=start), 400)
    z = run.at(np.array([ON_BEAM[0]]))[:, 0, 2]
    z, t = z - z.mean(), np.asarray(run.times)
    k = np.flatnonzero((z[:-1] < 0.0) & (z[1:] >= 0.0))
    crossings = t[k] - z[k] * (t[k + 1] - t[k]) / (z[k + 1] - z[k])
    return float(1.0 / np.diff(crossings).mean())


def drop(scene: pl.Scene) -> np.ndarray:
    """Of the three places of the tip [mm]."""
    u = scene.body.displacement_at(np.array(ON_BEAM), pl.solve_static(scene))
    return -1e3 * u[:, 2]
