"""Films of elastic bodies that another simulator (NGSolve) moved, to recover materials from.

    python benchmarks/foreign_films.py --out DIR [--convergence] [--check] [NAME ...]

DIR/NAME then holds `scene.toml` (the same body in pliant, with its true material), `recording/`
(what `pliant reconstruct --observations` reads, with `truth.json`: the true values and where a fit
starts) and `film.json` (how the film was made). --convergence repeats each motion on a finer mesh,
with other elements and with half the step, and keeps the changes in foreign/convergence.json;
--check simulates each scene with pliant and compares depths with the film's.
"""

import argparse
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import ngsolve as ng
import numpy as np
from foreign.bodies import ForeignBody, clamped_box, held_torus, sleeved_box
from foreign.convergence import RECORD as CONVERGENCE
from foreign.convergence import convergence
from foreign.depth_film import film
from foreign.motion import GRAVITY, RADIUS, FallingBody, ForeignMotion, Jerk, Rubber
from foreign.residuals import depth_residuals_of

from pliant.app.describing.scene_files import scene_text
from pliant.core.files import write_json, write_text
from pliant.observe.files import save_observations

log = logging.getLogger("foreign_films")

NOISE = 5e-4
"""Standard deviation of a depth [m]."""

STEPS = 4
"""Time steps of the film maker for each frame."""

CELLS_ACROSS = 6
"""Cells of the scene across the body's thinnest part."""

JERK_TIMES = 51
"""Of the list that says how a clamp moves: every 2 ms, the step of the fits."""


@dataclass(frozen=True)
class FilmPlan:
    """A film: what is filmed, how finely it is computed, and where a fit of it starts.

    edge: of the tetrahedra [m], of order `order`: 3 where quadratic ones are more than 0.3 % too
    stiff (foreign/convergence.json); frame_step [s]; start: Young's modulus [Pa], Poisson's ratio;
    jerk: the body hangs in balance and its clamp moves so; without, it is released from rest.
    """

    title: str
    body: ForeignBody
    rubber: Rubber
    order: int
    edge: float
    frames: int
    frame_step: float
    start: tuple[float, float]
    seed: int
    jerk: Jerk | None = None

    def motion(self) -> ForeignMotion:
        """Computed by NGSolve."""
        solid = FallingBody(self.body.mesh(self.edge), self.rubber, order=self.order)
        if self.jerk is not None:
            return solid.jerked(self.frames, self.frame_step, STEPS, self.jerk)
        return solid.release(self.frames, self.frame_step, STEPS)


def beam() -> FilmPlan:
    """A clamped beam, taller than wide, released under gravity."""
    return FilmPlan(
        "Clamped beam, Poisson's ratio 0.3", clamped_box((0.15, 0.03, 0.02)),
        Rubber(120e3, 0.3, 1000.0), order=2, edge=0.0065, frames=50, frame_step=0.008,
        start=(300e3, 0.42), seed=11,
    )  # fmt: skip


def block() -> FilmPlan:
    """The silicone block of docs/reconstruct.md."""
    return FilmPlan(
        "Silicone block, Poisson's ratio 0.45", clamped_box((0.12, 0.03, 0.03)),
        Rubber(69e3, 0.45, 1070.0), order=3, edge=0.01, frames=50, frame_step=0.008,
        start=(30e3, 0.33), seed=12,
    )  # fmt: skip


def tilted() -> FilmPlan:
    """A beam turned against all axes, so that every wall of it is cut."""
    return FilmPlan(
        "Tilted beam, Poisson's ratio 0.4",
        clamped_box((0.12, 0.025, 0.025), angle=0.67, axis=(0.3, 0.5, 0.9)),
        Rubber(80e3, 0.4, 1100.0), order=3, edge=0.0085, frames=50, frame_step=0.008,
        start=(200e3, 0.28), seed=13,
    )  # fmt: skip


def torus() -> FilmPlan:
    """A ring held at its highest point, which swings down and bends."""
    return FilmPlan(
        "Hanging torus, Poisson's ratio 0.35",
        held_torus(0.05, 0.0125, axis=(0.25, 0.75, 0.6), grip=0.032),
        Rubber(100e3, 0.35, 1050.0), order=3, edge=0.0095, frames=50, frame_step=0.008,
        start=(40e3, 0.22), seed=14,
    )  # fmt: skip


def stout() -> FilmPlan:
    """A stout block, nearly incompressible, that shears as much as it bends."""
    return FilmPlan(
        "Stout block, Poisson's ratio 0.49", clamped_box((0.1, 0.04, 0.05)),
        Rubber(30e3, 0.49, 1070.0), order=3, edge=0.0125, frames=50, frame_step=0.008,
        start=(75e3, 0.37), seed=15,
    )  # fmt: skip


JERK = Jerk((0.006, 0.018, 0.00632), begin=0.024, time=0.1)
"""By 2 cm, against all axes."""


def jerked() -> FilmPlan:
    """A clamped beam that hangs in balance, and its clamp is jerked by 2 cm in 0.1 s."""
    return FilmPlan(
        "Beam whose clamp is jerked, Poisson's ratio 0.4", clamped_box((0.12, 0.03, 0.03)),
        Rubber(150e3, 0.4, 1070.0), order=3, edge=0.01, frames=32, frame_step=0.008,
        start=(330e3, 0.28), seed=16, jerk=JERK,
    )  # fmt: skip


def sleeved() -> FilmPlan:
    """The same in a sleeve of 2 cm, whose end is somewhere along the beam."""
    return FilmPlan(
        "Beam whose sleeve is jerked, Poisson's ratio 0.4",
        sleeved_box((0.14, 0.03, 0.03), grip=0.02),
        Rubber(150e3, 0.4, 1070.0), order=3, edge=0.013, frames=32, frame_step=0.008,
        start=(330e3, 0.28), seed=17, jerk=JERK,
    )  # fmt: skip


FILMS: dict[str, Callable[[], FilmPlan]] = {
    f.__name__: f for f in (beam, block, tilted, torus, stout, jerked, sleeved)
}


def scene_table(plan: FilmPlan) -> dict[str, Any]:
    """The film's scene, with its true values, as a scene file says it."""
    fixed: dict[str, Any] = {"region": plan.body.region}
    start = {}
    if plan.jerk is not None:
        times = plan.jerk.begin + plan.jerk.time * np.linspace(0.0, 1.0, JERK_TIMES)
        fixed["times"] = times.tolist()
        fixed["displacements"] = [plan.jerk(t).tolist() for t in times]
        start = {"start": "equilibrium"}
    return {
        "title": plan.title,
        "steps": plan.frames,
        "law": "neo-hookean",
        "gravity": list(GRAVITY),
        "shape": plan.body.shape,
        "body": {"kind": "grid", "spacing": plan.body.thickness / CELLS_ACROSS},
        "material": {
            "youngs_modulus": plan.rubber.youngs_modulus,
            "poisson_ratio": plan.rubber.poisson_ratio,
            "density": plan.rubber.density,
        },
        "fixed": [fixed],
        "integrator": {"type": "Newmark2", "dt": plan.frame_step},
    } | start


def make_film(name: str, folder: Path) -> dict[str, Any]:
    """Write one film's folder; returns what `film.json` holds."""
    plan = FILMS[name]()
    start = perf_counter()
    motion = plan.motion()
    moved = perf_counter()
    seen = film(motion, noise=NOISE, seed=plan.seed)
    save_observations(seen, folder / "recording")
    write_text(folder / "scene.toml", scene_text(scene_table(plan)))
    truth = {
        "youngs_modulus": plan.rubber.youngs_modulus,
        "poisson_ratio": plan.rubber.poisson_ratio,
        "density": plan.rubber.density,
        "start": {"youngs_modulus": plan.start[0], "poisson_ratio": plan.start[1]},
    }
    write_json(folder / "recording" / "truth.json", truth)
    reach = abs(motion.of(plan.body.probes)).max(axis=(0, 1))
    record = {
        "title": plan.title,
        "made_by": f"benchmarks/foreign_films.py, NGSolve {ng.__version__}",
        "order": plan.order,
        "edge_m": plan.edge,
        "tetrahedra": motion.mesh.ne,
        "dofs": motion.field.space.ndof,
        "scheme": f"generalised-alpha, spectral radius {RADIUS}, no other damping",
        "step_s": plan.frame_step / STEPS,
        "frames": plan.frames,
        "points": seen.point_count,
        "noise_m": NOISE,
        "largest_motion_m": reach.tolist(),
        "motion_seconds": round(moved - start, 1),
        "film_seconds": round(perf_counter() - moved, 1),
    }
    if CONVERGENCE.is_file():
        record["convergence"] = json.loads(CONVERGENCE.read_text()).get(name)
    write_json(folder / "film.json", record)
    return record


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the films")
    parser.add_argument("--convergence", action="store_true", help="measure the film maker's own")
    parser.add_argument("--check", action="store_true", help="residuals of pliant at the truth")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FILMS)}; else all")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in FILMS]:
        parser.error(f"no film is called {unknown[0]}: there are {', '.join(FILMS)}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ng.SetNumThreads(1)
    for name in given.names or FILMS:
        folder = given.out / name
        if given.convergence:
            log.info("%s: %s", name, json.dumps(convergence(name, FILMS[name]())))
        elif given.check:
            log.info("%s: %s", name, json.dumps(depth_residuals_of(folder)))
        else:
            log.info("%s: %s", name, json.dumps(make_film(name, folder)))


if __name__ == "__main__":
    main()
