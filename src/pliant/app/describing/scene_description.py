"""From a `Scene` to the dictionary of plain values that describes it; how two of them differ."""

import math
from dataclasses import fields
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.loads import Fixed, Load, Motion, PointLoad, Pressure, Traction
from pliant.dynamics.model import World
from pliant.dynamics.obstacles import Obstacle, Plane
from pliant.dynamics.point_mass import PointMass
from pliant.dynamics.scene import Scene
from pliant.dynamics.start import Start
from pliant.fem.material_regions import NUMBERS, MaterialRegion


def describe_scene(scene: Scene) -> dict[str, Any]:
    """Plain values from which `build_scene` makes the same scene again."""
    if not isinstance(scene, Scene):
        from pliant.app.describing.world_files import describe_world  # other worlds, by their kind

        return describe_world(scene)
    origin = origin_of(scene)
    result: dict[str, Any] = {k: origin[k] for k in ("title", "description") if origin.get(k)}
    if "steps" in origin:
        result["steps"] = origin["steps"]
    result |= {
        **scene.constitution.entries(),
        "dilatation": scene.dilatation,
        "gravity": _plain(scene.gravity),
        "initial_velocity": _plain(scene.initial_velocity),
        "initial_spin": _plain(scene.initial_spin),
        "start": _start_entry(scene.begin),
        "tolerance": scene.tolerance,
        "preconditioner": scene.preconditioner,
    }
    if origin.get("shape") is not None:
        result["shape"] = origin["shape"]
    m, c = scene.material, scene.contact
    result |= {
        "body": origin["body"],
        "material": {
            k: _plain(getattr(m, k))
            for k in (
                "youngs_modulus", "poisson_ratio", "density", "mass_damping", "stiffness_damping",
            )
        },
        "integrator": {
            "type": scene.integrator.name,
            "dt": scene.integrator.dt,
            **scene.integrator.parameters,
        },
    }  # fmt: skip
    if m.branches:
        result["material"]["branches"] = [
            {"modulus": b.modulus, "time": b.time} for b in m.branches
        ]
    if m.regions:
        result["material"]["regions"] = [_region_table(r) for r in m.regions]
    if scene.attached:
        result["attached"] = [_mass_table(a) for a in scene.attached]
    if scene.fixed:
        result["fixed"] = [_fixed_table(f, i) for i, f in enumerate(scene.fixed)]
    if scene.loads:
        result["loads"] = [_load_table(load, i) for i, load in enumerate(scene.loads)]
    if scene.obstacles:
        result["obstacles"] = [_obstacle_table(o) for o in scene.obstacles]
        law = {f.name: getattr(c, f.name) for f in fields(c)}
        result["contact"] = {k: v for k, v in law.items() if v is not None}
    return result


def _region_table(region: MaterialRegion) -> dict[str, Any]:
    own = {name: getattr(region, name) for name in NUMBERS}
    return {
        "shape": region.shape.to_dict(),
        **{name: float(value) for name, value in own.items() if value is not None},
    }


def _mass_table(one: PointMass) -> dict[str, Any]:
    if one.region is not None:
        return {"mass": one.mass, "region": one.region.to_dict()}
    return {"mass": one.mass, "point": _plain(one.point)}


def _start_entry(start: Start) -> str | dict[str, Any]:
    if not start.modes:
        return start.kind
    assert start.reference is not None
    return {
        "kind": start.kind,
        "modes": start.modes,
        "amplitudes": _plain(start.amplitudes),
        "velocities": _plain(start.velocities),
        "reference": {
            name: _plain(getattr(start.reference, name))
            for name in ("youngs_modulus", "poisson_ratio", "density")
        },
    }


def origin_of(scene: World) -> dict[str, Any]:
    """What the scene, or else its body, remembers of how the body was made."""
    told = scene.source or {}
    origin = told
    if told.get("made") is not scene.body:  # the body was replaced since: it speaks for itself
        words = {k: told[k] for k in ("title", "description", "steps") if k in told}
        origin = {**words, **(scene.body.origin_of or {})}
    if not origin or "body" not in origin:
        raise BadInput(
            "This scene was not built from a description, and its body knows no shape: name the "
            'mesh in the description, as body = {kind = "tets", file = "mesh.vtu"}, and use '
            "build_scene."
        )
    return origin


def _plain(value: Any) -> Any:
    """Numbers and lists of numbers."""
    array = np.asarray(value, float)
    return float(array) if array.ndim == 0 else array.tolist()


def _fixed_table(fixed: Fixed, i: int) -> dict[str, Any]:
    table: dict[str, Any] = {"region": fixed.region.to_dict(), "axes": fixed.axes}
    if fixed.stiffness is not None:
        table["stiffness"] = float(fixed.stiffness)
    if any(fixed.shift):
        table["shift"] = _plain(fixed.shift)
    given = fixed.displacement
    if isinstance(given, Motion):
        return table | {"times": _plain(given.times), "displacements": _plain(given.values)}
    if callable(given):
        raise BadInput(
            f"fixed[{i}]: its displacement is a Python function, which a file cannot hold: "
            "use a Motion."
        )
    return table if given is None else table | {"displacement": _plain(given)}


def _load_table(load: Load, i: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if isinstance(load, Traction):
        table = {"type": "traction", "region": load.region.to_dict(), "force": _plain(load.force)}
    elif isinstance(load, Pressure):
        table = {"type": "pressure", "region": load.region.to_dict(), "pressure": load.pressure}
    elif isinstance(load, PointLoad):
        table = {"type": "point", "point": _plain(load.point), "force": _plain(load.force)}
    elif callable(load.force):
        raise BadInput(
            f"loads[{i}]: its force is a Python function, which a file cannot hold: use a vector."
        )
    else:
        table = {"type": "body", "force": _plain(load.force)}
    if load.history is not None:
        factors = [float(v[0]) for v in load.history.values]
        table["history"] = {"times": _plain(load.history.times), "factors": factors}
    return table


def _obstacle_table(obstacle: Plane | Obstacle) -> dict[str, Any]:
    if isinstance(obstacle, Plane):
        return {"type": "plane", "normal": _plain(obstacle.normal), "offset": obstacle.offset}
    table: dict[str, Any] = {"type": "shape", "shape": obstacle.shape.to_dict()}
    return table if obstacle.spacing is None else table | {"spacing": obstacle.spacing}


def first_difference(a: Any, b: Any, where: str = "") -> str | None:
    """The first key at which two descriptions differ, with both values, or None.

    Numbers are the same if they agree to 12 digits: directions are scaled to length 1 each time
    they are read, which may change their last one.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            place = f"{where}.{key}" if where else key
            if key not in a or key not in b:
                there, here = ("present", "absent") if key in a else ("absent", "present")
                return f"{place} is {there} there, {here} here"
            if found := first_difference(a[key], b[key], place):
                return found
        return None
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"{where} has {len(a)} entries there, {len(b)} here"
        pairs = enumerate(zip(a, b, strict=True))
        found = (first_difference(x, y, f"{where}[{i}]") for i, (x, y) in pairs)
        return next((d for d in found if d), None)
    if isinstance(a, int | float) and isinstance(b, int | float):
        same = math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15)
    else:
        same = a == b
    return None if same else f"{where} is {a!r} there, {b!r} here"
