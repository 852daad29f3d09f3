"""Taylor tests of the whole chain, unknown x cost x integrator; the table of docs/derivatives.md.

PLIANT_WRITE_DOCS=1 python -m pytest -m slow tests/inverse/test_taylor_table.py   writes it anew.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.measuring.level_set_cost import LevelSets
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "derivatives.md"
BODY = pl.GridBody(pl.shapes.torus(major=0.5, minor=0.25), 0.2)
STEPS = 4
SCHEMES = [
    pl.Newmark1(0.03, 0.6), pl.Newmark2(0.03), pl.Newmark3(0.02), pl.LinearAcceleration(0.02),
    pl.HHT(0.03), pl.ImplicitEuler(0.03),
]  # fmt: skip
COSTS = ("depth", "foot", "pullback", "level set", "nodes")
NORMAL = (0.1, 1.0, 0.05)
FLOOR = float((BODY.nodes @ np.asarray(NORMAL) / np.linalg.norm(NORMAL)).min())
STARTS = {
    "youngs_modulus": 500.0, "poisson_ratio": 0.3, "density": 1.0, "mass_damping": 0.1,
    "stiffness_damping": 0.01, "gravity": (1.0, -9.0, 2.0), "ground_normal": NORMAL,
    "ground_offset": FLOOR - 0.02, "contact_stiffness": 300.0,
    "initial_velocity": (0.3, -0.5, 0.1), "initial_spin": (0.2, 0.5, 0.1),
}  # fmt: skip
OTHERS = {"damping_ratios": (0.1, 0.15), "gravity_direction": (0.1, -0.97, 0.2)}
"""Unknowns that move what others of the list hold, hence apart."""

PER_CELL = "youngs_modulus, one per cell"

SIZES = {
    "ground_offset": 0.004, "ground_normal": 0.004, "gravity": 0.4, "initial_velocity": 0.08,
    "initial_spin": 0.08, "contact_stiffness": 0.08,
}  # fmt: skip
"""First steps in units of the free coordinate: a per cent or so of what it is; more where so little
comes of it that the remainders would be those of the linear solves."""


def scene(scheme) -> pl.Scene:
    return pl.Scene(
        BODY, pl.Material(500.0, 0.3, 1.0, mass_damping=0.1, stiffness_damping=0.01),
        gravity=(1.0, -9.0, 2.0), tolerance=1e-12, obstacles=[pl.Plane(NORMAL, FLOOR - 0.02)],
        contact=pl.ContactLaw(stiffness=300.0, friction=0.3, slip_speed=0.1), integrator=scheme,
        initial_velocity=(0.3, -0.5, 0.1), initial_spin=(0.2, 0.5, 0.1),
    )  # fmt: skip


def observed(s: pl.Scene, kind: str):
    """A run of a slightly softer body, filmed."""
    softer = replace(s, material=replace(s.material, youngs_modulus=400.0), gravity=(1.5, -10, 2))
    run = pl.simulate(softer, STEPS)
    if kind == "nodes":
        return pl.NodeMotions.of(run)
    if kind == "level set":
        return LevelSets.of(run)
    cameras = pl.ring_of_cameras(s, 3, width=36, height=36)
    seen = pl.observe(
        run, cameras, noise=0.004, seed=1, frames=[2, 4],
        kind="depth" if kind == "depth" else "points",
    )  # fmt: skip
    return replace(seen, noise=None)  # not known: the loss's scale stands for it


def remainder(base, moved, dq) -> float:
    """Size of the cost minus its linearisation point by point, so that nothing cancels.

    A ray that passes an occluding contour jumps to another part of the body; it is left out. So is
    the hundredth with the largest remainders: a ray that passes an edge between two facets has a
    kink there, and one of them may outweigh all others, while a wrong derivative is wrong for all.
    """
    parts = []
    for k, f in base.frames.items():
        r, loss = moved.frames[k].r, base.loss
        same = f.usable & moved.frames[k].usable & (np.abs(r - f.r) < 0.1)
        value, weight = loss(f.r)
        parts.append(np.abs(loss(r)[0] - value - weight * f.r * (f.J @ dq))[same])
    size = np.sort(np.concatenate(parts))
    return float(size[: len(size) - len(size) // 100].sum())


def rates(s: pl.Scene, seen, cost: str, starts: dict) -> dict[str, float]:
    """Observed order of |J(q + e d) - J(q) - e dJ.d|, d random within each unknown."""
    members = UnknownSet(tuple(make_unknown(n, v, s) for n, v in starts.items()))
    problem = Problem(s, seen, members, cost="auto" if cost in ("nodes", "level set") else cost)
    # a loss with kinks has no second order at them; the foot point's curvature shift, noise^2 H, is
    # a lagged constant that no derivative knows: with this noise it is nothing
    loss = Loss(1e-5, "squares")
    q = members.start()
    base = problem.evaluate(q, loss)
    g = base.model[1]
    assert problem.gradient(q, loss)[1] == pytest.approx(g, rel=1e-6, abs=1e-8 * np.abs(g).max())
    rng = np.random.default_rng(5)
    out = {}
    for member, part in zip(members.members, members.split(np.arange(len(q))), strict=True):
        d = np.zeros(len(q))
        d[part] = rng.uniform(0.5, 1.0, len(part)) * rng.choice([-1.0, 1.0], len(part))
        size = SIZES.get(member.name, 0.02)
        remainders, sizes = [], []
        for k in range(4):
            e = size / 2**k
            moved = problem.evaluate(q + e * d, loss, derivatives=False)
            remainders.append(remainder(base, moved, e * d))
            sizes.append(e)
        if max(remainders) < 1e-9 * base.cost:
            out[member.name] = np.inf  # linear to rounding
        else:
            out[member.name] = float(np.polyfit(np.log(sizes), np.log(remainders), 1)[0])
    return out


def table_of(found: dict[tuple[str, str], dict[str, float]]) -> str:
    schemes = [s.name for s in SCHEMES]
    lines = ["| unknown | cost | " + " | ".join(schemes) + " |"]
    lines.append("|---|---|" + "---:|" * len(schemes))
    for unknown in (*STARTS, *OTHERS, PER_CELL):
        for cost in COSTS:
            cells = [found[(name, cost)][unknown] for name in schemes]
            shown = ["linear" if np.isinf(c) else f"{c:.2f}" for c in cells]
            lines.append(f"| {unknown} | {cost} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


TEXT = """# Derivatives

Every number here is computed by `tests/inverse/test_taylor_table.py`: the order with which |J(q + e
d) - J(q) - e dJ.d|, summed point by point so that nothing cancels, falls when e is halved three
times from some per cent of the unknown; dJ from the tangents, which equal the adjoint to 1e-6 here
and to 1e-8 over tighter solves (`tests/inverse/test_derivatives.py`). The case: four steps of a
torus that is thrown, spins, falls on a sloped floor with friction and is filmed there; rays that
jump over an occluding contour are left out. 2 is exact; a wrong derivative shows as 1. "linear":
the remainder is rounding. The curvature shift that the foot-point cost removes, noise^2 H, is held
while the cost is differentiated; the noise counts as unknown here, so it is nil.

{table}
"""


def rates_of(scheme) -> dict[tuple[str, str], dict[str, float]]:
    s = scene(scheme)
    out = {}
    for cost in COSTS:
        seen = observed(s, cost)
        out[(scheme.name, cost)] = {
            **rates(s, seen, cost, STARTS),
            **rates(s, seen, cost, OTHERS),
            PER_CELL: rate_of_field(s, seen, cost),
        }
    return out


def rate_of_field(s: pl.Scene, seen, cost: str) -> float:
    """All cells change at once, each by another share."""
    start = {"youngs_modulus": np.full(len(BODY.cells), 500.0)}
    return rates(s, seen, cost, start)["youngs_modulus"]


def check(found) -> None:
    low = {(key, n): r for key, row in found.items() for n, r in row.items() if not r >= 1.9}
    assert not low


def test_some_unknowns():
    """All of them for the depth of a film; how far other costs reach, one tells."""
    few = {n: STARTS[n] for n in ("youngs_modulus", "gravity", "ground_offset")}
    s = scene(SCHEMES[0])
    asked = {cost: {"youngs_modulus": few["youngs_modulus"]} for cost in COSTS} | {"depth": few}
    found = {cost: rates(s, observed(s, cost), cost, asked[cost]) for cost in COSTS}
    found["depth"][PER_CELL] = rate_of_field(s, observed(s, "depth"), "depth")
    check(found)


@pytest.mark.slow
def test_all_integrators():
    found: dict = {}
    for scheme in SCHEMES:
        found |= rates_of(scheme)
    if os.environ.get("PLIANT_WRITE_DOCS"):
        PAGE.write_text(TEXT.format(table=table_of(found)), encoding="utf-8")
    check(found)
