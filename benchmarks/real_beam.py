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
from beam_branches import foretold, material_labels, modulus_at, ringing, together
from beam_branches import found as made_of
from beam_runs import (
    DECAY,
    HUNG,
    MARKERS,
    ON_BEAM,
    REFERENCE,
    TIPS,
    beam,
    drop,
    frequency,
    recording,
    resting,
)

import pliant as pl


def swing(data: Path) -> pl.Fit:
    """Modulus and damping from the free decay."""
    seen = recording(data, "gravity").only(*TIPS).between(*DECAY)
    unknowns = {
        "youngs_modulus": 2.2e5, "stiffness_damping": 2e-3,
        "start_amplitudes": (0.0, 0.0), "start_velocities": (0.0, 0.0),
    }  # fmt: skip
    start = pl.Start("state", modes=2, reference=REFERENCE)
    return pl.reconstruct(beam(start=start), seen, unknowns, density_known_to=0.0)


def sag(x: pl.Experiment) -> pl.Fit:
    """Modulus from one rest."""
    return pl.reconstruct(x.scene, x.seen, {"youngs_modulus": 2e5}, density_known_to=0.0)


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


def elastic(data: Path, picture: Path | None) -> None:
    """Swing and sag, each with a modulus of its own, and what they foretell."""
    found = swing(data)
    if picture is not None:
        draw(data, found, picture)
    print("the swing", found, sep="\n")
    modulus, beta = (found.values[n] for n in ("youngs_modulus", "stiffness_damping"))
    own = frequency(beam(modulus=modulus))
    print(f"frequency {own:.3f} Hz (measured 7.738), ratio {np.pi * own * beta:.4f} (0.052)")
    for name, attached, seen in (("gravity", (), 6.51), ("load52", (HUNG,), 17.16)):
        print(f"the sag, {name}", sag(resting(data, name, *attached)), sep="\n")
        heavier = beam(*attached, modulus=modulus)
        print(f"foretold by the swing: {drop(heavier)} mm (tip1 {seen})")
    light, heavy = resting(data, "gravity"), resting(data, "load52", HUNG)
    both = pl.reconstruct([light, heavy], unknowns={"youngs_modulus": 2e5})
    print("both sags in one fit", both, sep="\n")
    told = pl.predict(sag(light), heavy.scene, heavy.seen)
    print("the sag of 52 g, foretold by the other", told, sep="\n")
    print(f"foretold with 52 g: {frequency(beam(HUNG, modulus=modulus)):.3f} Hz (measured 4.347)")


def branched(data: Path, runs: tuple[str, ...], count: int) -> pl.Fit:
    """Swing and rest in one fit with branches, and what that beam does with and without 52 g."""
    fit = together(data, runs, count)
    print(f"{' and '.join(runs)}, swing and rest, {count} branches", fit, sep="\n")
    values = [fit.values[x] for x in material_labels(fit)]
    for hz in (7.73, 4.34):
        answer = modulus_at(values, hz)
        print(f"storage modulus at {hz} Hz {answer.real:.0f}, loss {answer.imag:.0f} Pa")
    for name, attached in (("gravity", ()), ("load52", (HUNG,))):
        scene = made_of(beam(*attached), values)
        hz, ratio = ringing(scene)
        print(f"{name}: {hz:.3f} Hz, damping ratio {ratio:.4f}, drop {drop(scene)} mm")
    if "load52" not in runs:
        print("foretold, nothing of the 52 g run fitted:", *foretold(fit), sep="\n")
    return fit


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--picture", type=Path, help="draw the swing into this file")
    parser.add_argument(
        "--only", choices=("elastic", "light", "both"),
        help="one part: without branches, branches of the gravity run, of both runs",
    )  # fmt: skip
    given = parser.parse_args()
    data = given.data
    if given.only in (None, "elastic"):
        elastic(data, given.picture)
    if given.only in (None, "light"):
        for count in (1, 2):
            branched(data, ("gravity",), count)
    if given.only in (None, "both"):
        branched(data, ("gravity", "load52"), 1)


if __name__ == "__main__":
    main()
