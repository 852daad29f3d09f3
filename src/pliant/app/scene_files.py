"""Scenes as TOML: one dictionary of plain values between the file and the `Scene`.

    file  <->  dictionary  <->  Scene
          read_description, save_scene    build_scene, describe_scene

A `Scene` made here remembers in `source` what its arrays cannot tell: the shape, how the body was
made from it, the number of steps and the title. Paths are absolute in a dictionary; in a file they
are relative to it when they lie below its folder.
"""

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.law_files import describe_law, law_of
from pliant.app.scene_model import BodyTable, HistoryTable, SceneTable, check
from pliant.core.errors import BadInput, MissingExtra, PliantError
from pliant.core.files import write_text
from pliant.dynamics.integrators import INTEGRATORS, Integrator
from pliant.dynamics.loads import BodyForce, Fixed, Load, Motion, PointLoad, Pressure, Traction
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.dynamics.scene import Scene
from pliant.fem.body import Body
from pliant.fem.grid_body import GridBody
from pliant.fem.material import Material
from pliant.fem.tet_body import TetBody
from pliant.geometry.describe import shape_from_dict
from pliant.geometry.field_files import field_suffix
from pliant.geometry.shape import Shape

MAX_FILE_BYTES = 10 * 1024**2
"""Largest scene file read; a list with a modulus for each of 500,000 cells fits in it."""

MAX_DEPTH = 80
"""Nesting of tables allowed in a scene file; shapes allow 64."""

_VECTOR = re.compile(r"\[\n(?:\s+[-+\w.]+,\n){1,4}\s*\]")
"""A short list of numbers as tomli_w writes it, one to a line."""

BodyMaker = Callable[[Shape | None, BodyTable], Body]


def load_scene(path_or_name: str | Path) -> Scene:
    """The scene of a TOML file, or a built-in one by its name."""
    from pliant.app.scenes import find_description  # the built-in scenes are made of descriptions

    return build_scene(find_description(path_or_name), name=str(path_or_name))


def save_scene(scene: Scene, path: str | Path) -> None:
    """Write the scene as TOML; the file appears whole or not at all."""
    import tomli_w

    path = Path(path)
    description = _with_paths(describe_scene(scene), lambda p: _shortened(p, path.parent))
    write_text(path, _VECTOR.sub(_one_line, tomli_w.dumps(description)))


def _one_line(found: re.Match[str]) -> str:
    return f"[{', '.join(found.group()[1:-1].replace(',', ' ').split())}]"


def read_description(path: str | Path) -> dict[str, Any]:
    """The dictionary of a TOML file, with absolute paths; the keys are not checked yet."""
    path = Path(path)
    text = _read_text(path)
    try:
        description = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not valid TOML: {_first_line(error)}.") from error
    except RecursionError:
        raise BadInput(f"{path}: its tables are nested too deeply; flatten the shape.") from None
    if _depth(description) > MAX_DEPTH:
        raise BadInput(f"{path}: its tables are nested too deeply; flatten the shape.")
    folder = path.absolute().parent
    return _with_paths(description, lambda p: str(folder / p))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def _read_text(path: Path) -> str:
    try:
        if path.is_symlink():
            raise BadInput(f"{path}: is a symbolic link; name the file itself.")
        if path.is_dir():
            raise BadInput(f"{path}: is a folder, not a scene file.")
        if not path.is_file():
            raise BadInput(f"{path}: there is no such scene file.")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadInput(f"{path}: larger than 10 MB, which is too large for a scene file.")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{str(path)!r}: cannot be read ({reason}).") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file (UTF-8), so not a scene file.") from error
    if "\0" in text:
        raise BadInput(f"{path}: not a text file (it has zero bytes), so not a scene file.")
    return text


def _depth(value: Any) -> int:
    deepest, stack = 0, [(value, 1)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        children = item.values() if isinstance(item, dict) else item
        if isinstance(item, dict | list) and level <= MAX_DEPTH:
            stack.extend((child, level + 1) for child in children)
    return deepest


def _with_paths(value: Any, change: Callable[[str], str]) -> Any:
    """A copy in which every text under a key "file" is changed."""
    if isinstance(value, Mapping):
        return {
            k: change(v) if k == "file" and isinstance(v, str) else _with_paths(v, change)
            for k, v in value.items()
        }
    return [_with_paths(v, change) for v in value] if isinstance(value, list | tuple) else value


def _shortened(path: str, folder: Path) -> str:
    inside = os.path.relpath(path, folder)
    return path if inside.startswith(os.pardir) else inside


# --- dictionary to scene


def build_scene(
    description: Mapping[str, Any], *, name: str = "", make_body: BodyMaker | None = None
) -> Scene:
    """The scene of a dictionary; `name` begins the error messages (a file or a built-in name).

    make_body(shape, table): how the body is made, if not by GridBody or TetBody; a resumed run
    hands back the mesh it started with.
    """
    start = f"{name}: " if name else ""
    try:
        table = check(dict(description))
        return _scene(table, make_body or _body)
    except MissingExtra:
        raise
    except PliantError as error:
        raise type(error)(f"{start}{error}") from error


def _scene(table: SceneTable, make_body: BodyMaker) -> Scene:
    shape = None
    if table.body.file is None:
        if table.shape is None:
            raise BadInput("shape: this table is missing; a scene needs a body's shape.")
        shape = _shape(table.shape, "shape")
    elif table.shape is not None:
        raise BadInput("body.file: there is a [shape] already; give only one of the two.")
    # everything small first: a wrong key must not wait for a large mesh
    material = _material(table)
    law = law_of(table.law)
    integrator = _integrator(table)
    fixed = [_fixed(table, i) for i in range(len(table.fixed))]
    loads = [_load(table, i) for i in range(len(table.loads))]
    obstacles = [_obstacle(table, i) for i in range(len(table.obstacles))]
    body = make_body(shape, table.body)
    for kind, items in (("fixed", fixed), ("loads", loads)):
        for i, item in enumerate(items):
            _same_dim(f"{kind}[{i}].region", getattr(item, "region", None), body)
    for i, item in enumerate(obstacles):
        _same_dim(f"obstacles[{i}].shape", getattr(item, "shape", None), body)
    return Scene(
        body,
        material=material,
        gravity=tuple(table.gravity),
        fixed=fixed,
        loads=loads,
        obstacles=obstacles,
        contact=ContactLaw(**table.contact.model_dump()),
        integrator=integrator,
        model=table.model,
        law=law,
        initial_velocity=tuple(table.initial_velocity),
        initial_spin=tuple(table.initial_spin),
        tolerance=table.tolerance, preconditioner=table.preconditioner,
        source={
            "title": table.title,
            "description": table.description,
            "steps": table.steps,
            "shape": shape.to_dict() if shape is not None else None,
            "body": table.body.model_dump(exclude_none=True),
        },
    )


def _shape(description: Mapping[str, Any], where: str) -> Shape:
    return shape_from_dict(_typed(description), where=where)


def _typed(value: Any) -> Any:
    """A table with a file and no type gets the type that the file's ending tells."""
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    result = {key: _typed(item) for key, item in value.items()}
    if "file" in result and "type" not in result:
        is_field = isinstance(result["file"], str) and field_suffix(Path(result["file"]))
        result = {"type": "field" if is_field else "mesh", **result}
    return result


def _body(shape: Shape | None, table: BodyTable) -> Body:
    if table.kind == "tets":
        if table.spacing is not None:
            raise BadInput("body.spacing: tets have an edge_length, not a spacing.")
        if table.subdivisions != 1:
            raise BadInput("body.subdivisions: only the cells of a grid are subdivided.")
        return _within("body", lambda: TetBody(shape or table.file, table.edge_length))
    if table.edge_length is not None:
        raise BadInput("body.edge_length: a grid has a spacing, not an edge_length.")
    if shape is None:
        raise BadInput('body.file: only a body of kind = "tets" can come from a mesh file.')
    return _within(
        "body", lambda: GridBody(shape, table.spacing, subdivisions=table.subdivisions)
    )


def _within(place: str, make: Callable[[], Any]) -> Any:
    """Errors of `make` with the key in front."""
    try:
        return make()
    except MissingExtra:
        raise
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def _material(table: SceneTable) -> Material:
    m = table.material
    by_ratio = (m.damping_frequencies, m.damping_ratios)
    coefficients = (m.mass_damping, m.stiffness_damping)
    if any(v is not None for v in by_ratio):
        if any(v is None for v in by_ratio):
            raise BadInput(
                "material: damping_frequencies and damping_ratios belong together; give both."
            )
        if any(v is not None for v in coefficients):
            raise BadInput(
                "material: give damping_ratios or mass_damping and stiffness_damping, not both."
            )

    def value(v):
        return np.array(v) if isinstance(v, list) else v

    def make() -> Material:
        base = Material(
            value(m.youngs_modulus), value(m.poisson_ratio), value(m.density),
            m.mass_damping or 0.0, m.stiffness_damping or 0.0,
        )  # fmt: skip
        if m.damping_frequencies is None or m.damping_ratios is None:
            return base
        f, r = m.damping_frequencies, m.damping_ratios
        return base.with_damping_ratios(frequencies=(f[0], f[1]), ratios=(r[0], r[1]))

    return _within("material", make)


def _integrator(table: SceneTable) -> Integrator:
    t = table.integrator
    options = {k: v for k in ("theta", "alpha") if (v := getattr(t, k)) is not None}
    known = {"Newmark1": "theta", "HHT": "alpha"}.get(t.type)
    for key in options:
        if key != known:
            has = f"its parameter is {known}" if known else "it has no parameters"
            raise BadInput(f"integrator.{key}: {t.type} does not take this; {has}.")
    return _within("integrator", lambda: INTEGRATORS[t.type](t.dt, **options))


def _fixed(table: SceneTable, i: int) -> Fixed:
    t, where = table.fixed[i], f"fixed[{i}]"
    displacement: tuple[float, ...] | Motion | None = None
    if t.times is not None or t.displacements is not None:
        if t.times is None or t.displacements is None:
            raise BadInput(f"{where}: times and displacements belong together; give both.")
        if t.displacement is not None:
            raise BadInput(f"{where}.displacement: give this or times and displacements, not both.")
        if len({len(v) for v in t.displacements}) > 1:
            raise BadInput(f"{where}.displacements: the vectors have different lengths.")
        times, values = tuple(t.times), tuple(tuple(v) for v in t.displacements)
        displacement = _within(where, lambda: Motion(times, values))
    elif t.displacement is not None:
        displacement = tuple(t.displacement)
    region = _shape(t.region, f"{where}.region")
    return _within(where, lambda: Fixed(region, displacement, t.axes))


def _load(table: SceneTable, i: int) -> Load:
    t, where = table.loads[i], f"loads[{i}]"
    history = _history(t.history, where)
    if t.type == "traction":
        return Traction(_shape(t.region, f"{where}.region"), tuple(t.force), history)
    if t.type == "pressure":
        return Pressure(_shape(t.region, f"{where}.region"), t.pressure, history)
    if t.type == "point":
        return PointLoad(tuple(t.point), tuple(t.force), history)
    return BodyForce(tuple(t.force), history)


def _history(t: HistoryTable | None, where: str) -> Motion | None:
    if t is None:
        return None
    values = tuple((f,) for f in t.factors)
    return _within(f"{where}.history", lambda: Motion(tuple(t.times), values))


def _obstacle(table: SceneTable, i: int) -> Plane | Obstacle:
    t, where = table.obstacles[i], f"obstacles[{i}]"
    if t.type == "plane":
        return _within(where, lambda: Plane(tuple(t.normal), t.offset))
    return Obstacle(_shape(t.shape, f"{where}.shape"), t.spacing)


def _same_dim(where: str, shape: Shape | None, body: Body) -> None:
    if shape is not None and shape.dim != body.dim:
        raise BadInput(f"{where}: this shape is {shape.dim}D, but the body is {body.dim}D.")


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


# --- scene to dictionary


def describe_scene(scene: Scene) -> dict[str, Any]:
    """Plain values from which `build_scene` makes the same scene again."""
    origin = _origin(scene)
    result: dict[str, Any] = {k: origin[k] for k in ("title", "description") if origin.get(k)}
    if "steps" in origin:
        result["steps"] = origin["steps"]
    result |= {
        "model": scene.model,
        "gravity": _plain(scene.gravity),
        "initial_velocity": _plain(scene.initial_velocity),
        "initial_spin": _plain(scene.initial_spin),
        "tolerance": scene.tolerance,
        "preconditioner": scene.preconditioner,
    }
    if scene.law is not None:
        result["law"] = describe_law(scene.law)
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
    if scene.fixed:
        result["fixed"] = [_fixed_table(f, i) for i, f in enumerate(scene.fixed)]
    if scene.loads:
        result["loads"] = [_load_table(load, i) for i, load in enumerate(scene.loads)]
    if scene.obstacles:
        result["obstacles"] = [_obstacle_table(o) for o in scene.obstacles]
        law = {f.name: getattr(c, f.name) for f in fields(c)}
        result["contact"] = {k: v for k, v in law.items() if v is not None}
    return result


def _origin(scene: Scene) -> dict[str, Any]:
    """What the scene, or else its body, remembers of how the body was made."""
    origin = scene.source or getattr(scene.body, "origin_of", None)
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
