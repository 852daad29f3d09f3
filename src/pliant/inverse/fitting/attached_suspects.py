"""What hangs on a body and was held for known, or for nothing: markers and attached things.

The residuals' derivative by a mass is the difference of two runs: by so much more or less of what
is attached, or, where nothing is, by a small mass at each tracked point (one number, all markers
alike) and on the end that is farthest from the clamps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.lengths import place
from pliant.dynamics.point_mass import PointMass
from pliant.geometry.primitives import Ball
from pliant.observe.tracks import TrackedPoints

MARKERS, ATTACHED, THING = "markers", "attached[", "thing"

SHARE = 0.005
"""Of the body's mass that is put on it for the difference of two runs."""

CHANGE = 0.05
"""Of an attached mass, each way, for that difference."""

LEAST_MASS = 0.002
"""Of the body's mass: less is also what a grid leaves."""

MOST = 2
"""Attached masses that are tried."""


@dataclass(frozen=True)
class MassTrial:
    """start: mass [kg] as it is held; ends: what is attached in the two runs, width [kg] apart;
    where: in words; count: of the things that have this mass each.
    """

    name: str
    start: float
    ends: tuple[Sequence[PointMass], Sequence[PointMass]]
    width: float
    where: str
    count: int = 1

    def matters(self, mass: float, scene: Any) -> bool:
        """Whether a mass [kg] can be, and is more than a grid could be mistaken for."""
        return mass > 0.0 and abs(mass - self.start) * self.count > LEAST_MASS * body_mass(scene)

    def told(self, mass: float, sigma: float) -> str:
        """The mass in words."""
        size = f"{mass_words(mass)} +- {mass_words(sigma)}"
        if self.name.startswith(ATTACHED):
            return f"a mass of {size} instead of {mass_words(self.start)} ({self.where})"
        return f"masses of {size} {self.where}" if self.count > 1 else f"{size} {self.where}"

    @property
    def way(self) -> str:
        """What to do about it."""
        weigh = "Weigh it" if self.count == 1 else "Weigh one"
        if self.name.startswith(ATTACHED):
            return f"{weigh}, and correct its mass."
        return f"{weigh}, and put what sits on the body into the scene ([[attached]], PointMass)."


def mass_trials(scene: Any, seen: Any) -> list[MassTrial]:
    """The masses that may be wrong or missing."""
    held = list(getattr(scene, "attached", None) or ())
    if not hasattr(scene, "attached"):
        return []
    out = []
    for k, one in enumerate(held[:MOST]):
        step = CHANGE * one.mass
        more, less = (
            [*held[:k], replace(one, mass=one.mass + side * step), *held[k + 1 :]]
            for side in (1.0, -1.0)
        )
        where = f"{ATTACHED}{k}]"
        out.append(MassTrial(where, one.mass, (more, less), 2.0 * step, where))
    own = body_mass(scene)
    points = _marker_points(scene, seen)
    if points:
        each = SHARE * own / len(points)
        more = [*held, *(PointMass(each, tuple(p)) for p in points)]
        where = f"at each of the {len(points)} tracked points (markers)"
        out.append(MassTrial(MARKERS, 0.0, (more, held), each, where, len(points)))
    far = _far_end(scene)
    if far is not None and not held:
        more = [PointMass(SHARE * own, region=far)]
        where = f"about {place(far.center)}"
        out.append(MassTrial(THING, 0.0, (more, held), SHARE * own, where))
    return out


def body_mass(scene: Any) -> float:
    """Of the body without what hangs on it [kg]."""
    volumes = scene.body.cell_volumes
    return float(volumes @ scene.cell_material.densities(len(volumes)))


def _marker_points(scene: Any, seen: Any) -> list[np.ndarray]:
    """Tracked points that sit on the body, or at most a cell beside it."""
    if not isinstance(seen, TrackedPoints):
        return []
    found = []
    for point in seen.first() if seen.at is None else seen.at:
        try:
            PointMass(1.0, tuple(point)).check(scene.body)
        except BadInput:
            continue
        found.append(point)
    return found


def _far_end(scene: Any) -> Ball | None:
    """A ball about the part of the surface that is farthest from what is held."""
    regions = [f.place for f in scene.fixed if hasattr(f, "place")]
    if not regions:
        return None
    points = scene.body.surface.positions(scene.body.nodes)
    away = np.min([r.distance(points) for r in regions], axis=0)
    h = scene.body.spacing
    end = points[away > away.max() - 0.5 * h]
    centre = np.round(end.mean(axis=0) / h, 3) * h + 0.0
    reach = float(np.linalg.norm(end - centre, axis=1).max())
    return Ball(reach + 0.1 * h, tuple(centre))


def mass_words(kilograms: float) -> str:
    """With the unit that suits it."""
    size = abs(kilograms)
    if size >= 1.0 or size == 0.0:
        return f"{kilograms:.3g} kg"
    return f"{1e3 * kilograms:.3g} g" if size >= 1e-3 else f"{1e6 * kilograms:.3g} mg"
