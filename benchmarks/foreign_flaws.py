"""Fits of a film by another simulator with one thing wrong: of the recording, or of the scene.

    python benchmarks/foreign_films.py --out films jerked sleeved
    python benchmarks/foreign_flaws.py --films films [NAME ...] [--json FILE]

The film is of a beam that hangs in balance until its clamp is jerked; where a clamp that sits
elsewhere is the flaw, it is a sleeve. Required: Young's modulus
within 3 % (of the film as it is, Poisson's ratio within 0.02 as well) with what mends the flaw, and
without it a line of advice that names what mends it.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from foreign_fits import SURE, UNKNOWNS, Film, read_film

import pliant as pl
from pliant.observe.calibration import SURFACE_NUMBERS, Pose
from pliant.observe.observations import Frame

REQUIRED = 0.03
"""Largest error of Young's modulus, as a share."""

REQUIRED_RATIO = 0.02
"""Largest error of Poisson's ratio, of the film as it is."""

CLOCK = 0.008
"""How much too early frames are stamped [s]."""

SHIFT, TURN = 2e-3, np.radians(0.5)
"""How far off all cameras are [m, rad]."""

OUTLIERS = 0.05
"""Share of the pixels that see something else, at half to one and a half of their depth."""

ASIDE = 3e-3
"""How far the scene's clamp reaches less along the beam than the film's [m]."""

SCAN_VIEWS, SCAN_NOISE = 20, 5e-4
"""Views of the body before it was clamped, and the standard deviation of their depths [m]."""


@dataclass(frozen=True)
class Flaw:
    """A film with a flaw.

    unknowns, options: of reconstruct, that make up for it; named: what advice must hold without.
    """

    film: Film
    unknowns: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    named: str = ""


def none(film: Film) -> Flaw:
    """The film as it is."""
    return Flaw(film)


def clock(film: Film) -> Flaw:
    """All frames are stamped early."""
    frames = [replace(f, time=f.time - CLOCK) for f in film.seen.frames]
    seen = replace(film.seen, frames=frames)
    return Flaw(replace(film, seen=seen), {"time_offset": 0.0}, named="--unknown time_offset")


def poses(film: Film) -> Flaw:
    """All cameras are said to be elsewhere, together."""
    way, axis = np.array([2.0, -1.0, 2.0]) / 3.0, np.array([1.0, 2.0, -2.0]) / 3.0
    middle = np.mean([f.points.mean(axis=0) for f in film.seen.frames], axis=0)
    pose = Pose(np.concatenate([SHIFT * way, TURN * axis]), middle)
    cameras = [
        replace(c, position=pose.apply(c.position[None])[0], rotation=c.rotation @ pose.rotation.T)
        for c in film.seen.cameras
    ]
    frames = [replace(f, points=pose.apply(f.points)) for f in film.seen.frames]
    seen = replace(film.seen, frames=frames, cameras=cameras)
    return Flaw(
        replace(film, seen=seen), {"recording_pose": (0.0,) * 6}, {"register": False},
        named="--unknown recording_pose",
    )  # fmt: skip


def shape(film: Film) -> Flaw:
    """The shape is what a noisy scan made of it."""
    scene = film.scene
    still = replace(scene, gravity=(0.0, 0.0, 0.0), start="rest")
    cameras = pl.ring_of_cameras(still, SCAN_VIEWS, width=160, height=120)
    views = pl.observe(pl.simulate(still, 1), cameras, noise=SCAN_NOISE, seed=1, frames=[0])
    body = pl.GridBody(pl.fuse(views).shape, scene.body.spacing)
    return Flaw(
        replace(film, scene=replace(scene, body=body)),
        {"surface_offset": (0.0,) * SURFACE_NUMBERS}, named="--unknown surface_offset",
    )  # fmt: skip


def outliers(film: Film) -> Flaw:
    """Some pixels see something else."""
    rng = np.random.default_rng(5)

    def spoiled(frame: Frame) -> Frame:
        wild = rng.random(len(frame)) < OUTLIERS
        depth = frame.depth * np.where(wild, 0.5 + rng.random(len(frame)), 1.0)
        eyes = np.array([c.position for c in film.seen.cameras])[frame.camera]
        points = eyes + (frame.points - eyes) * (depth / frame.depth)[:, None]
        return replace(frame, depth=depth, points=points)

    seen = replace(film.seen, frames=[spoiled(f) for f in film.seen.frames])
    return Flaw(replace(film, seen=seen), options={"loss": "tukey"}, named="'tukey'")


def clamp(film: Film) -> Flaw:
    """The scene's clamp reaches less far than the film's."""
    held = film.scene.fixed[0]
    region = pl.shapes.translated(held.region, offset=(-ASIDE, 0.0, 0.0))
    scene = replace(film.scene, fixed=[replace(held, region=region)])
    return Flaw(
        replace(film, scene=scene), {"wall_place.0.x": 0.0}, named="--unknown wall_place.0.x"
    )


FLAWS: dict[str, Callable[[Film], Flaw]] = {
    f.__name__: f for f in (none, clock, poses, shape, outliers, clamp)
}


def fitted(flaw: Flaw, *, mended: bool, quick: bool = False) -> dict[str, Any]:
    """One fit, as numbers; quick: without coarser repeats, which total error bars need."""
    film, options = flaw.film, dict(SURE)
    starts: dict[str, Any] = {n: film.start[n] for n in UNKNOWNS}
    if mended:
        starts, options = starts | flaw.unknowns, options | flaw.options
    if quick or not mended:  # for its advice, not for its error bars
        options["discretisation"] = False
    began = process_time()
    fit = pl.reconstruct(film.scene, film.seen, starts, **options)
    modulus, ratio = (film.truth[n] for n in UNKNOWNS)
    return {
        "error": fit.values["youngs_modulus"] / modulus - 1.0,
        "ratio_error": fit.values["poisson_ratio"] - ratio,
        "values": fit.values, "sigma": fit.sigma, "total_sigma": fit.total_sigma,
        "converged": fit.converged, "reasons": fit.reasons, "advice": fit.advice,
        "rms": fit.rms, "noise": fit.noise, "cpu_seconds": process_time() - began,
    }  # fmt: skip


def missed(name: str, flaw: Flaw, row: dict[str, Any], *, mended: bool) -> bool:
    """Whether a requirement is."""
    if not mended:
        return not any(flaw.named in line for line in row["advice"])
    bad = abs(row["error"]) > REQUIRED
    return bad or (name == "none" and abs(row["ratio_error"]) > REQUIRED_RATIO)


def main() -> None:
    """Fit and print; a non-zero exit where a requirement is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FLAWS)}; else all")
    parser.add_argument("--films", type=Path, required=True)
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    parser.add_argument("--quick", action="store_true", help="no coarser repeats")
    parser.add_argument("--only", choices=("mended", "as-it-is"), help="one of the two fits")
    asked = parser.parse_args()
    rows, failed = {}, 0
    for name in asked.names or FLAWS:
        flaw = FLAWS[name](read_film(asked.films / ("sleeved" if name == "clamp" else "jerked")))
        for mended in (True, False) if flaw.named else (True,):
            if asked.only == ("as-it-is" if mended else "mended"):
                continue
            row = fitted(flaw, mended=mended, quick=asked.quick)
            bad = missed(name, flaw, row, mended=mended)
            failed += bad
            key = f"{name}, {'mended' if mended else 'as it is'}" if flaw.named else name
            rows[key] = row
            lines = [
                f"{key:<22}{'MISSED' if bad else 'good':<8}E {100 * row['error']:+.2f} %  "
                f"nu {row['ratio_error']:+.4f}  converged {row['converged']}  "
                f"{row['cpu_seconds']:.0f} s of CPU",
                *(f"    {label} {row['values'][label]:.5g} +- {row['total_sigma'][label]:.2g}"
                  for label in row["values"]),
                *(f"    {line}" for line in row["advice"]),
            ]  # fmt: skip
            print("\n".join(lines), flush=True)  # noqa: T201
            if asked.json is not None:
                asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
