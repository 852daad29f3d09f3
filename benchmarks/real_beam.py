"""A real silicone beam: its modulus from the swing and from the sag, and what that foretells.

A clamped Dragon Skin 10 beam of 100 x 30 x 30 mm, six markers, 100 Hz (Dubied, Michelis, Spielberg
and Katzschmann 2022); the files are not part of the project:

    python benchmarks/real_beam.py DATA     # the folder with beam_gravity_V2_a_lab.csv

The release by hand is no clean step, so the swing is fitted from 0.12 s after it on, with a start
in the two first modes as unknown. What hangs from the beam in the second run hangs along the upper
edge of its end. docs/real.md tells the story.
"""

import argparse
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


def swing(data: Path) -> pl.Fit:
    """Modulus and damping from the free decay."""
    seen = recording(data, "gravity").only(*TIPS).between(*DECAY)
    unknowns = {
        "youngs_modulus": 2.2e5, "stiffness_damping": 2e-3,
        "start_amplitudes": (0.0, 0.0), "start_velocities": (0.0, 0.0),
    }  # fmt: skip
    start = pl.Start("state", modes=2, reference=REFERENCE)
    return pl.reconstruct(beam(start=start), seen, unknowns, density_known_to=0.0)


def resting(data: Path, name: str, *attached: pl.PointMass) -> pl.Experiment:
    """Where the markers came to rest, against where they were held."""
    run = recording(data, name).only(*TIPS)
    rest = run.positions[-20:].mean(axis=0)
    seen = pl.TrackedPoints(
        [0.0], rest[None], at=run.positions[LEVEL].mean(axis=0), sigma=5e-4, names=TIPS
    )
    return pl.Experiment(beam(*attached, start="equilibrium"), seen, name)


def sag(x: pl.Experiment) -> pl.Fit:
    """Modulus from one rest."""
    return pl.reconstruct(x.scene, x.seen, {"youngs_modulus": 2e5}, density_known_to=0.0)


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


def draw(data: Path, found: pl.Fit, picture: Path) -> None:
    """Height of the second tip marker over time: recorded, and of the beam that was found."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    seen = recording(data, "gravity").only("tip2").between(*DECAY)
    v = found.values
    amplitudes, velocities = (
        [v[f"start_{part}.{k}"] for k in (1, 2)] for part in ("amplitudes", "velocities")
    )
    start = pl.Start("state", 2, amplitudes, velocities, REFERENCE)
    scene = beam(modulus=v["youngs_modulus"], start=start)
    damped = replace(scene.material, stiffness_damping=v["stiffness_damping"])
    run = pl.simulate(replace(scene, material=damped), round((DECAY[1] - DECAY[0]) / scene.dt))
    height = run.at(np.array([ON_BEAM[1]]))[:, 0, 2] - ON_BEAM[1][2]
    place = v["tracked_places[5]"]
    recorded = seen.positions[:, 0, 2] - MARKERS["tip2"][2] - place
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, height_ratios=(3, 1))
    above.plot(run.times, 1e3 * height, label="found")
    above.plot(seen.times, 1e3 * recorded, ".", label="recorded")
    above.set(ylabel="height of a marker [mm]")
    above.legend()
    missed = recorded - np.interp(seen.times, run.times, height)
    below.plot(seen.times, 1e3 * missed, ".", color="C1")
    below.axhline(0.0, color="grey", lw=0.5)
    below.set(xlabel="time since the hand has gone [s]", ylabel="left [mm]")
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--picture", type=Path, help="draw the swing into this file")
    given = parser.parse_args()
    data = given.data
    found = swing(data)
    if given.picture:
        draw(data, found, given.picture)
    print("the swing", found, sep="\n")
    modulus, beta = (found.values[n] for n in ("youngs_modulus", "stiffness_damping"))
    own = frequency(beam(modulus=modulus))
    print(f"frequency {own:.3f} Hz (measured 7.738), ratio {np.pi * own * beta:.4f} (0.052)")
    for name, attached, seen in (("gravity", (), 6.51), ("load52", (HUNG,), 17.16)):
        print(f"the sag, {name}", sag(resting(data, name, *attached)), sep="\n")
        foretold = beam(*attached, modulus=modulus)
        print(f"foretold by the swing: {drop(foretold)} mm (tip1 {seen})")
    light, heavy = resting(data, "gravity"), resting(data, "load52", HUNG)
    together = pl.reconstruct([light, heavy], unknowns={"youngs_modulus": 2e5})
    print("both sags in one fit", together, sep="\n")
    told = pl.predict(sag(light), heavy.scene, heavy.seen)
    print("the sag of 52 g, foretold by the other", told, sep="\n")
    print(f"foretold with 52 g: {frequency(beam(HUNG, modulus=modulus)):.3f} Hz (measured 4.347)")


if __name__ == "__main__":
    main()
