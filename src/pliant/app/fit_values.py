"""The values of a scene that may be unknown: read from it, given on the command line, labelled."""

from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene
from pliant.fem.laws.law import Law
from pliant.inverse.law_unknowns import PREFIX
from pliant.inverse.material_unknowns import damping_frequencies
from pliant.inverse.unknowns import make_unknown

TRUTH = "truth.json"
"""What a simulated recording was made with; lies beside it, and only tables show it."""

DEFAULT_UNKNOWNS = ("youngs_modulus", "poisson_ratio")

AWAY = {"poisson_ratio": lambda value: value + 0.02}
"""How far from the truth a fit of a filmed scene starts: 0.02 here, ten percent elsewhere."""

VECTORS = ("gravity", "gravity_direction", "ground_normal", "initial_velocity", "initial_spin")
"""Unknowns of three numbers."""

Values = dict[str, Any]


def scene_values(scene: Scene) -> Values:
    """Name: number, or list, of everything that may be unknown and is uniform in this scene."""
    m = scene.material
    weight = np.linalg.norm(scene.gravity)
    plane = next((o for o in scene.obstacles if isinstance(o, Plane)), None)
    found: Values = {
        "youngs_modulus": m.youngs_modulus,
        "poisson_ratio": m.poisson_ratio,
        "density": m.density,
        "mass_damping": m.mass_damping,
        "stiffness_damping": m.stiffness_damping,
        "damping_ratios": _damping_ratios(scene),
        "gravity": list(scene.gravity),
        "gravity_direction": [float(g / weight) for g in scene.gravity] if weight else None,
        "initial_velocity": list(scene.initial_velocity),
        "initial_spin": list(scene.initial_spin),
        "contact_stiffness": scene.contact.stiffness,
    }
    if plane is not None:
        found |= {"ground_normal": list(plane.normal), "ground_offset": plane.offset}
    if isinstance(scene.law, Law):
        found |= {f"{PREFIX}{name}": value for name, value in scene.law.values.items()}
    return {
        name: [float(c) for c in value] if isinstance(value, list) else float(value)
        for name, value in found.items()
        if value is not None and (isinstance(value, list) or np.ndim(value) == 0)
    }


def _damping_ratios(scene: Scene) -> list[float] | None:
    w = 2.0 * np.pi * np.asarray(damping_frequencies(scene))
    ratios = 0.5 * (scene.material.mass_damping / w + scene.material.stiffness_damping * w)
    return [float(r) for r in ratios] if (ratios > 0.0).all() else None


def parse_unknowns(given: list[str], scene: Scene, *, away: bool) -> Values:
    """Starts by name of --unknown options such as youngs_modulus=2200 or gravity=0,-9.8,0.

    Without options: Young's modulus and Poisson's ratio. Without a value: the scene's own, moved
    off it if `away` (the scene is its own truth).
    """
    own = scene_values(scene)
    starts: Values = {}
    for option in given or DEFAULT_UNKNOWNS:
        name, _, text = (part.strip() for part in option.partition("="))
        if name in starts:
            raise BadInput(f"--unknown {name} is given twice.")
        fallback = (1.0, 1.0) if name == "damping_ratios" else 1.0
        make_unknown(name, own.get(name, fallback), scene)  # an unknown name is refused here
        if text:
            starts[name] = _numbers(name, text)
        elif name in own:
            starts[name] = (
                AWAY.get(name, lambda v: 1.1 * v)(own[name])
                if (away and np.ndim(own[name]) == 0)
                else own[name]
            )
        else:
            raise BadInput(f"--unknown {name} needs a start: {name}=VALUE.")
        member = make_unknown(name, starts[name], scene)
        member.coordinates(member.start)  # a start outside the possible is refused here
    return starts


def _numbers(name: str, text: str) -> float | list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not np.isfinite(numbers).all():
        raise BadInput(f"--unknown {name}={text}: expected a number, or numbers with commas.")
    wanted = 3 if name in VECTORS else 2 if name == "damping_ratios" else 1
    if len(numbers) != wanted:
        raise BadInput(f"--unknown {name} takes {wanted} number(s), not {len(numbers)}.")
    return numbers[0] if wanted == 1 else numbers


def labelled(starts: Values, values: Values, scene: Scene) -> dict[str, float]:
    """Label: number of some values, in the coordinates of unknowns that start at `starts`."""
    out: dict[str, float] = {}
    for name, start in starts.items():
        if name not in values:
            continue
        member = make_unknown(name, start, scene)
        value = np.atleast_1d(np.asarray(values[name], float))
        if name in ("gravity", "initial_velocity"):
            value = value[: scene.dim]
        if hasattr(member, "normal"):  # two angles from its start
            try:
                numbers = member.value(member.coordinates(value))
            except BadInput:
                continue  # more than 90 degrees off: it has none
        elif len(value) == member.size:
            numbers = value
        else:
            continue
        out |= dict(zip(member.labels, (float(x) for x in numbers), strict=True))
    return out


def unlabelled(starts: Values, numbers: dict[str, float], scene: Scene) -> Values:
    """Start values by name from numbers by label, as a history line holds them."""
    out: Values = {}
    for name, start in starts.items():
        member = make_unknown(name, start, scene)
        try:
            value = np.array([float(numbers[label]) for label in member.labels])
        except (KeyError, TypeError, ValueError):
            return starts
        normal = getattr(member, "normal", None)
        if normal is not None:
            out[name] = [float(c) for c in normal(value)]
        else:
            out[name] = float(value[0]) if len(value) == 1 else [float(c) for c in value]
    return out
