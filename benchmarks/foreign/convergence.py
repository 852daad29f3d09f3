"""How far a film's motion is from converged, in millimetres and in the values a fit would find.

A change of the probes' motion is written as d = s_E dlnE + s_nu dnu + rest by least squares: dlnE
and dnu are what a fit that saw the probes would err by. The sensitivities s and the change by the
time step need no fine mesh and are taken with quadratic elements on a coarser one.
"""

import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from foreign.motion import FallingBody, Rubber

RECORD = Path(__file__).with_name("convergence.json")

FRAMES = 16
"""Of each film that are repeated: most of the first swing's way down."""

LN_E, NU = 0.02, 0.01
"""Changes of ln E and of Poisson's ratio for the sensitivities."""

COARSE, FINE = 1.4, 1.5
"""Edge length of coarser runs over that of the film; that of the film over that of a finer run."""


def convergence(name: str, plan: Any, steps: int = 4) -> dict[str, Any]:
    """Repeats of a plan, cheap ones first; convergence.json is written after each."""
    start = perf_counter()
    rubber: Rubber = plan.rubber
    coarse = COARSE * plan.edge

    def probes(order: int, edge: float, rubber: Rubber = rubber, cut: int = steps) -> np.ndarray:
        solid = FallingBody(plan.body.mesh(edge), rubber, order=order)
        return solid.release(FRAMES, plan.frame_step, cut).of(plan.body.probes)

    rough = probes(2, coarse)
    stiffer = replace(rubber, youngs_modulus=rubber.youngs_modulus * np.exp(LN_E))
    slimmer = replace(rubber, poisson_ratio=rubber.poisson_ratio - NU)
    by_modulus = (probes(2, coarse, stiffer) - rough).ravel() / LN_E
    by_ratio = (probes(2, coarse, slimmer) - rough).ravel() / -NU
    found: dict[str, Any] = {"order": plan.order, "edge_m": plan.edge, "frames": FRAMES}

    def note(what: str, change: np.ndarray) -> None:
        slopes = np.stack([by_modulus, by_ratio], axis=1)
        both, *_ = np.linalg.lstsq(slopes, change.ravel(), rcond=None)
        found[what] = {
            "largest_change_mm": 1e3 * float(np.linalg.norm(change, axis=2).max()),
            "rms_change_mm": 1e3 * float(np.sqrt((change**2).sum(axis=2).mean())),
            "youngs_modulus_percent": 100 * float(both[0]),
            "poisson_ratio": float(both[1]),
            "youngs_modulus_alone_percent": 100 * float(
                by_modulus @ change.ravel() / (by_modulus @ by_modulus)
            ),
        }  # fmt: skip
        found["seconds"] = round(perf_counter() - start, 1)
        record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
        RECORD.write_text(json.dumps({**record, name: found}, indent=1) + "\n")

    note("half the step", probes(2, coarse, cut=2 * steps) - rough)
    film = probes(plan.order, plan.edge)
    found["largest_motion_mm"] = 1e3 * float(np.linalg.norm(film, axis=2).max())
    if plan.order == 2:
        note(f"edge times {COARSE}, order 3", probes(3, coarse) - film)
    else:
        note("order 2", probes(2, plan.edge) - film)
        rough = probes(plan.order, coarse)
    note(f"edge times {COARSE}", rough - film)
    note(f"edge over {FINE}", probes(plan.order, plan.edge / FINE) - film)
    return found
