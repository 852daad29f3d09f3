"""The cases of Weiss 2018, sections 5.8 and 5.9, and more: what is recovered against what is asked.

    python benchmarks/studies.py [NAME ...]      all of them without a name

Each study prints a line per number: what was found, what is asked, and whether it holds; STUDIES.md
and studies.json beside this file keep them. `bunny`, `dragon` and `bunny-all` need PLIANT_DATA.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import pliant as pl
from pliant.app.describing.scenes import load_builtin
from pliant.inverse.parameters.unknowns import make_unknown

HERE = Path(__file__).parent
START = {"youngs_modulus": 2200.0, "poisson_ratio": 0.32}
TRUTH = {"youngs_modulus": 2000.0, "poisson_ratio": 0.3}


@dataclass(frozen=True)
class Line:
    """One number of a study: found, the most that is allowed, and whether it holds."""

    what: str
    found: float
    allowed: float

    @property
    def holds(self) -> bool:
        return bool(abs(self.found) <= self.allowed)


STUDIES: dict[str, Callable[[], list[Line]]] = {}


def study(name: str):
    """Enter a study under a name."""

    def register(function):
        STUDIES[name] = function
        return function

    return register


def off(fit: pl.Fit, truth: dict[str, float]) -> dict[str, float]:
    """Errors in percent of the truth."""
    return {n: 100.0 * (fit.values[n] / v - 1.0) for n, v in truth.items()}


def in_sigma(fit: pl.Fit, truth: dict[str, float]) -> dict[str, float]:
    """Errors in standard deviations."""
    return {n: (fit.values[n] - v) / fit.sigma[n] for n, v in truth.items()}


def filmed(scene: pl.Scene, steps: int, noise: float, *, seed: int = 1, cameras: int = 10, **kw):
    """A run of the scene, filmed with noise in voxels."""
    run = pl.simulate(scene, steps)
    return pl.observe(
        run, pl.ring_of_cameras(scene, cameras), noise=noise * scene.body.spacing, seed=seed, **kw
    )


@study("torus-exact")
def torus_exact() -> list[Line]:
    """The torus without noise."""
    scene = load_builtin("torus")
    fit = pl.reconstruct(scene, filmed(scene, 30, 0.0), START)
    return [Line(f"{n} off [%]", e, 0.1) for n, e in off(fit, TRUTH).items()]


@study("torus")
def torus() -> list[Line]:
    """Depth noise of half a voxel, from near and from far."""
    scene = load_builtin("torus")
    seen = filmed(scene, 30, 0.5)
    out = []
    for where, start in (
        ("near", START),
        ("far", {"youngs_modulus": 500.0, "poisson_ratio": 0.45}),
    ):
        fit = pl.reconstruct(scene, seen, start)
        e, s = off(fit, TRUTH), in_sigma(fit, TRUTH)
        out += [
            Line(f"{where}: E off [%]", e["youngs_modulus"], 1.0),
            Line(f"{where}: Poisson's ratio off [%]", e["poisson_ratio"], 3.0),
            Line(f"{where}: largest error [sigma]", max(map(abs, s.values())), 3.0),
            Line(f"{where}: iterations", fit.iterations, 12),
            Line(f"{where}: seconds", fit.seconds, 35.6),
            Line(
                f"{where}: adjoint over forward step",
                fit.timings["adjoint_ms"] / fit.timings["forward_ms"],
                1.2,
            ),
        ]
    return out


@study("torus-seeds")
def torus_seeds(count: int = 20) -> list[Line]:
    """Mean error over noise seeds, depth and isotropic points."""
    scene = load_builtin("torus")
    run = pl.simulate(scene, 30)
    cameras = pl.ring_of_cameras(scene, 10)
    out = []
    for kind, most in (("depth", 0.5), ("points", 1.0)):
        errors = []
        for seed in range(count):
            seen = pl.observe(
                run, cameras, noise=0.5 * scene.body.spacing, seed=100 + seed, kind=kind
            )
            errors.append(list(in_sigma(pl.reconstruct(scene, seen, START), TRUTH).values()))
        for name, mean in zip(TRUTH, np.mean(errors, axis=0), strict=True):
            out.append(Line(f"{kind}: mean error of {name} [sigma]", float(mean), most))
    return out


@study("no-inverse-crime")
def no_inverse_crime() -> list[Line]:
    """Filmed from half the spacing and half the time step."""
    scene = load_builtin("torus")
    fine = scene.coarser(space=0.5, time=0.5)
    run = pl.simulate(fine, 60)
    seen = pl.observe(
        run, pl.ring_of_cameras(scene, 10), noise=0.5 * scene.body.spacing, seed=1,
        frames=list(range(2, 61, 2)),
    )  # fmt: skip
    fit = pl.reconstruct(scene, seen, START, discretisation=True)
    e = off(fit, TRUTH)
    out = [
        Line("E off [%]", e["youngs_modulus"], 3.0),
        Line("Poisson's ratio off [%]", e["poisson_ratio"], 6.0),
    ]
    for n, v in TRUTH.items():
        stated = fit.discretisation[n] + 2.0 * fit.sigma[n]
        out.append(Line(f"{n}: error over stated grid error + 2 sigma",
                        (fit.values[n] - v) / stated, 1.0))  # fmt: skip
    return out


@study("bar")
def bar() -> list[Line]:
    """Four unknowns of a swinging bar.

    Twice the density doubles the swing (24 voxels) and slows it down, so that both dampings show:
    with the light bar mass damping is a tenth of all damping, and its sigma 12 %.
    """
    scene = load_builtin("bar")
    scene = replace(scene, material=replace(scene.material, density=2.0))
    truth = TRUTH | {"mass_damping": 0.1, "stiffness_damping": 0.01}
    start = dict(zip(truth, (2500.0, 0.35, 0.15, 0.015), strict=True))
    fit = pl.reconstruct(scene, filmed(scene, 60, 0.5), start)
    out = [Line("E off [%]", off(fit, truth)["youngs_modulus"], 1.0)]
    for n, s in in_sigma(fit, truth).items():
        out.append(Line(f"{n} off [sigma]", s, 3.0))
        out.append(Line(f"{n}: sigma [%]", 100.0 * fit.sigma[n] / truth[n], 5.0))
    return out


@study("bunny")
def bunny() -> list[Line]:
    """The ground plane under a falling bunny."""
    scene = load_builtin("bunny")
    truth = scene.obstacles[0]
    seen = filmed(scene, 65, 0.5)
    start = (0.151, 0.957, 0.245)
    tilted = replace(scene, obstacles=(pl.Plane(start, 0.03),))
    fit = pl.reconstruct(tilted, seen, {"ground_normal": start, "ground_offset": 0.03})
    member = make_unknown("ground_normal", start, scene)
    found = member.chart.setting(np.array([fit.values[label] for label in member.labels]))
    angle = float(np.degrees(np.arccos(min(1.0, float(found @ np.asarray(truth.normal))))))
    return [
        Line("normal off [degrees]", angle, 0.5),
        Line("offset off [m]", fit.values["ground_offset"] - truth.offset, 0.005),
    ]


@study("dragon")
def dragon() -> list[Line]:
    """Young's modulus of the dragon with noise of a voxel."""
    scene = load_builtin("dragon")
    fit = pl.reconstruct(scene, filmed(scene, 30, 1.0, cameras=12), {"youngs_modulus": 10000.0})
    return [Line("E off [%]", off(fit, {"youngs_modulus": 5000.0})["youngs_modulus"], 1.0)]


@study("bunny-all")
def bunny_all() -> list[Line]:
    """All eight kinds of number at once, and the throw; the fit says which of them it cannot see.

    What it does not name must be within 3 % of the truth, or of the size that the unknown comes in
    where the truth is zero.
    """
    scene = load_builtin("bunny")
    stiffness = 20.0 * 2000.0 / scene.body.spacing
    scene = replace(scene, contact=pl.ContactLaw(stiffness=stiffness))
    truth = {
        "youngs_modulus": 2000.0, "poisson_ratio": 0.3, "density": 1.0, "mass_damping": 0.1,
        "stiffness_damping": 0.01, "contact_stiffness": stiffness,
    }  # fmt: skip
    start = {n: 1.08 * v for n, v in truth.items()}
    start |= {"gravity": (0.0, -9.5, 0.0), "ground_offset": 0.01}
    start |= {"initial_velocity": (0.0, 0.0, 0.0)}
    fit = pl.reconstruct(scene, filmed(scene, 65, 0.2), start)
    gravity = dict(zip(("gravity.x", "gravity.y", "gravity.z"), (0.0, -9.81, 0.0), strict=True))
    truth |= gravity | {"ground_offset": 0.0}
    speed = float(np.ptp(scene.body.nodes, axis=0).max()) / (65 * scene.dt)
    sizes = dict.fromkeys(gravity, 9.81) | {"ground_offset": speed * 65 * scene.dt}
    for axis in "xyz":
        truth[f"initial_velocity.{axis}"], sizes[f"initial_velocity.{axis}"] = 0.0, speed
    out = []
    for n, value in truth.items():
        error = 100.0 * (fit.values[n] - value) / sizes.get(n, value or 1.0)
        named = any(n in line for line in fit.advice)
        out.append(Line(f"{n} off [%]{', named as not seen' if named else ''}", error,
                        np.inf if named else 3.0))  # fmt: skip
    for line in fit.advice:
        sys.stdout.write(f"bunny-all          {line}\n")
    return out


def inclusion_case():
    """(scene with one modulus, observations, centres, the true centre, cells inside)."""
    h = 0.1
    body = pl.GridBody(pl.shapes.box(center=(1.0, 0.5, 1.0), size=(2.0, 1.0, 2.0)), h)
    centres = body.nodes[body.cells].mean(axis=1)
    where = np.array([0.65, 0.85, 1.25])
    inside = (np.abs(centres - where) < 1.51 * h).all(axis=1)
    material = pl.Material(
        np.where(inside, 20000.0, 2000.0), 0.3, 1.0, mass_damping=0.1, stiffness_damping=0.01
    )
    scene = pl.Scene(
        body, material, gravity=(150.0, -105.0, 90.0),
        fixed=[pl.Fixed(pl.shapes.box(center=(1.0, 0.0, 1.0), size=(3.0, 0.02, 3.0)))],
        integrator=pl.Newmark1(0.01, 0.6),
    )  # fmt: skip
    angles = 0.4 + 0.5 * np.pi * np.arange(4)
    cameras = [
        pl.Camera.looking(
            np.array([1.0, 0.5, 1.0]) + 4.0 * np.array([np.cos(a), 0.9, np.sin(a)]),
            (1.0, 0.5, 1.0), view_angle=40.0,
        )
        for a in angles
    ]  # fmt: skip
    seen = pl.observe(pl.simulate(scene, 15), cameras, noise=0.02 * h, seed=1)
    uniform = replace(scene, material=replace(material, youngs_modulus=2000.0))
    return uniform, seen, centres, where, inside


@study("inclusion")
def inclusion() -> list[Line]:
    """A stiff inclusion of 3 x 3 x 3 cells in a block of 4,000, as a modulus for every cell."""
    scene, seen, centres, where, inside = inclusion_case()
    fit = pl.reconstruct(
        scene, seen, {"youngs_modulus": np.full(len(centres), 1500.0)}, loss="squares",
        field_penalty=pl.FieldPenalty("tv", 6.0), field_parts=True,
    )  # fmt: skip
    values = np.array(list(fit.values.values()))
    contrast = np.log(values / np.median(values))
    weight = np.clip(contrast - 0.5 * contrast.max(), 0.0, None)
    found = (weight[:, None] * centres).sum(axis=0) / weight.sum()
    ratio = values[inside].mean() / np.median(values)
    for line in fit.advice:
        sys.stdout.write(f"inclusion          {line}\n")
    return [
        Line("place off [cells]", float(np.abs(found - where).max() / scene.body.spacing), 1.0),
        Line("contrast off [%]", 100.0 * (ratio / 10.0 - 1.0), 50.0),
        Line("iterations", fit.iterations, 40),
    ]


@study("coverage")
def coverage(count: int = 50) -> list[Line]:
    """How often the truth lies within two sigma, in a small case."""
    scene = pl.Scene(
        pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.25),
        pl.Material(2000.0, 0.3, 25.0, mass_damping=0.1, stiffness_damping=0.01),
        gravity=(4.0, -9.0, 3.0),
        fixed=[pl.Fixed(pl.shapes.box(center=(0, 1.35, 0), size=(1, 0.3, 1)))],
        integrator=pl.Newmark1(0.02, 0.6),
    )
    run = pl.simulate(scene, 12)
    cameras = pl.ring_of_cameras(scene, 4, width=40, height=40)
    inside = np.zeros(2)
    for seed in range(count):
        seen = pl.observe(
            run, cameras, noise=0.2 * scene.body.spacing, seed=seed, frames=[4, 8, 12]
        )
        s = in_sigma(pl.reconstruct(scene, seen, START), TRUTH)
        inside += [abs(v) <= 2.0 for v in s.values()]
    share = 100.0 * inside / count
    return [
        Line(f"{n}: outside two sigma [%]", 100.0 - float(c), 12.0)
        for n, c in zip(TRUTH, share, strict=True)
    ]


@study("iteration")
def iteration() -> list[Line]:
    """A Gauss-Newton iteration with four unknowns against a forward run."""
    from pliant.inverse.fitting.fitter import JACOBIAN_TOLERANCE
    from pliant.inverse.measuring.losses import Loss
    from pliant.inverse.motion.problem import Problem
    from pliant.inverse.motion.sensitivity import run
    from pliant.inverse.parameters.unknowns import UnknownSet

    scene = load_builtin("torus")
    seen = filmed(scene, 10, 0.5)
    start = START | {"mass_damping": 0.1, "stiffness_damping": 0.01}
    members = tuple(make_unknown(n, v, scene) for n, v in start.items())
    problem = Problem(scene, seen, UnknownSet(members), jacobian_tolerance=JACOBIAN_TOLERANCE)
    q, loss = problem.unknowns.start(), Loss(0.04)
    problem.evaluate(q, loss, horizon=2)
    ratios = []
    for _ in range(3):
        t0 = time.perf_counter()
        run(problem.system, 10)
        t1 = time.perf_counter()
        problem.evaluate(q, loss)
        ratios.append((time.perf_counter() - t1) / (t1 - t0))
    return [Line("iteration over forward run", float(np.median(ratios)), 3.0)]


def main() -> None:
    """Run the studies asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*STUDIES, []], default=[])
    asked = parser.parse_args()
    kept = HERE / "studies.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    for name in asked.names or STUDIES:
        began = time.perf_counter()
        lines = STUDIES[name]()
        seconds = time.perf_counter() - began
        found[name] = [vars(line) | {"holds": line.holds} for line in lines]
        for line in lines:
            verdict = "holds" if line.holds else "FALLS SHORT"
            sys.stdout.write(
                f"{name:18s} {line.what:48s} {line.found:+10.4g}  of {line.allowed:<8g} {verdict}\n"
            )
        sys.stdout.write(f"{name:18s} {seconds:.0f} s\n")
        sys.stdout.flush()
        kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (HERE / "STUDIES.md").write_text(table(found), encoding="utf-8")


def table(found: dict[str, list[dict]]) -> str:
    """The page of all results that are kept."""
    lines = [
        "# What is recovered", "",
        "Written by `python benchmarks/studies.py` (`make studies`), a study at a time. Seconds",
        "are those of the machine it ran on.", "",
        "| study | number | found | at most | |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name in STUDIES:
        for row in found.get(name, []):
            limit = "-" if row["allowed"] == np.inf else f"{row['allowed']:g}"
            verdict = "holds" if row["holds"] else "**falls short**"
            lines.append(f"| {name} | {row['what']} | {row['found']:.4g} | {limit} | {verdict} |")
    lines += ["", *(f"- `{n}`: {' '.join((s.__doc__ or '').split())}" for n, s in STUDIES.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
