"""From a `Scene` to the dictionary of plain values that describes it; how two of them differ."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.loads import Fixed, Load, Motion, PointLoad, Pressure, Traction
from pliant.dynamics.model import World
from pliant.dynamics.obstacles import Obstacle, Plane
from pliant.dynamics.parts.part import Part
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.dynamics.point_mass import PointMass
from pliant.dynamics.scene import Scene
from pliant.dynamics.start import Start
from pliant.fem.material_regions import NUMBERS, MaterialRegion


def describe_scene(scene: Scene | PartsScene) -> dict[str, Any]:
    """Plain values from which `build_scene` makes the same scene again."""
    if isinstance(scene, PartsScene):
        from pliant.app.describing.parts_files import describe_parts  # described as one body is

        return describe_parts(scene)
    if not isinstance(scene, Scene):
        from pliant.app.describing.world_files import describe_world  # other worlds, by their kind

        return describe_world(scene)
    origin = origin_of(scene)
    made, held = body_entries(scene, origin), held_entries(scene)
    result = words_of(origin)
    result |= {
        **scene.constitution.entries(),
        "dilatation": scene.dilatation,
        "gravity": plain(scene.gravity),
        "initial_velocity": plain(scene.initial_velocity),
        "initial_spin": plain(scene.initial_spin),
        "start": _start_entry(scene.begin),
        "tolerance": scene.tolerance,
        "preconditioner": scene.preconditioner,
        **made,
        "integrator": integrator_entry(scene),
        **held,
    }
    if scene.obstacles:
        result |= obstacle_entries(scene)
        result["contact"] = contact_entry(scene)
    return result


def words_of(origin: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says for people, and the steps."""
    words: dict[str, Any] = {k: origin[k] for k in ("title", "description") if origin.get(k)}
    return words | {k: origin[k] for k in ("steps",) if k in origin}


def body_entries(scene: Any, origin: Mapping[str, Any]) -> dict[str, Any]:
    """Shape, cells and material of a scene, or of a part."""
    m = scene.material
    made: dict[str, Any] = {"shape": origin["shape"]} if origin.get("shape") is not None else {}
    names = ("youngs_modulus", "poisson_ratio", "density", "mass_damping", "stiffness_damping")
    made |= {"body": origin["body"], "material": {k: plain(getattr(m, k)) for k in names}}
    if m.branches:
        made["material"]["branches"] = [{"modulus": b.modulus, "time": b.time} for b in m.branches]
    if m.regions:
        made["material"]["regions"] = [_region_table(r) for r in m.regions]
    return made


def held_entries(scene: Any) -> dict[str, Any]:
    """What hangs on a scene's body, or a part's, holds it and pulls on it."""
    held: dict[str, Any] = {}
    if scene.attached:
        held["attached"] = [_mass_table(a) for a in scene.attached]
    if scene.fixed:
        held["fixed"] = [_fixed_table(f, i) for i, f in enumerate(scene.fixed)]
    if scene.loads:
        held["loads"] = [_load_table(load, i) for i, load in enumerate(scene.loads)]
    return held


def integrator_entry(scene: Any) -> dict[str, Any]:
    """The scheme."""
    scheme = scene.integrator
    return {"type": scheme.name, "dt": scheme.dt, **scheme.parameters}


def obstacle_entries(scene: Any) -> dict[str, Any]:
    """What bodies may hit; nothing where there is none."""
    found = [_obstacle_table(o) for o in scene.obstacles]
    return {"obstacles": found} if found else {}


def contact_entry(scene: Any) -> dict[str, Any]:
    """The contact law's own numbers; of springs no word of the barrier."""
    law = {f.name: getattr(scene.contact, f.name) for f in fields(scene.contact)}
    if not scene.contact.is_barrier:
        del law["kind"], law["self_contact"]
    return {k: v for k, v in law.items() if v is not None}


def _region_table(region: MaterialRegion) -> dict[str, Any]:
    own = {name: getattr(region, name) for name in NUMBERS}
    return {
        "shape": region.shape.to_dict(),
        **{name: float(value) for name, value in own.items() if value is not None},
    }


def _mass_table(one: PointMass) -> dict[str, Any]:
    if one.region is not None:
        return {"mass": one.mass, "region": one.region.to_dict()}
    return {"mass": one.mass, "point": plain(one.point)}


def _start_entry(start: Start) -> str | dict[str, Any]:
    if not start.modes:
        return start.kind
    assert start.reference is not None
    return {
        "kind": start.kind,
        "modes": start.modes,
        "amplitudes": plain(start.amplitudes),
        "velocities": plain(start.velocities),
        "reference": {
            name: plain(getattr(start.reference, name))
            for name in ("youngs_modulus", "poisson_ratio", "density")
        },
    }


def origin_of(scene: World | Part) -> dict[str, Any]:
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


def plain(value: Any) -> Any:
    """Numbers and lists of numbers."""
    array = np.asarray(value, float)
    return float(array) if array.ndim == 0 else array.tolist()


def _fixed_table(fixed: Fixed, i: int) -> dict[str, Any]:
    table: dict[str, Any] = {"region": fixed.region.to_dict(), "axes": fixed.axes}
    if fixed.stiffness is not None:
        table["stiffness"] = float(fixed.stiffness)
    if any(fixed.shift):
        table["shift"] = plain(fixed.shift)
    given = fixed.displacement
    if isinstance(given, Motion):
        return table | {"times": plain(given.times), "displacements": plain(given.values)}
    if callable(given):
        raise BadInput(
            f"fixed[{i}]: its displacement is a Python function, which a file cannot hold: "
            "use a Motion."
        )
    return table if given is None else table | {"displacement": plain(given)}


def _load_table(load: Load, i: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if isinstance(load, Traction):
        table = {"type": "traction", "region": load.region.to_dict(), "force": plain(load.force)}
    elif isinstance(load, Pressure):
        table = {"type": "pressure", "region": load.region.to_dict(), "pressure": load.pressure}
    elif isinstance(load, PointLoad):
        table = {"type": "point", "point": plain(load.point), "force": plain(load.force)}
    elif callable(load.force):
        raise BadInput(
            f"loads[{i}]: its force is a Python function, which a file cannot hold: use a vector."
        )
    else:
        table = {"type": "body", "force": plain(load.force)}
    if load.history is not None:
        factors = [float(v[0]) for v in load.history.values]
        table["history"] = {"times": plain(load.history.times), "factors": factors}
    return table


def _obstacle_table(obstacle: Plane | Obstacle) -> dict[str, Any]:
    if isinstance(obstacle, Plane):
        return {"type": "plane", "normal": plain(obstacle.normal), "offset": obstacle.offset}
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
