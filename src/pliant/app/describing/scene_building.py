"""From a dictionary of plain values to the `Scene` it describes; errors name the key at fault."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.body_size import require_room
from pliant.app.describing.scene_model import (
    BodyKeys,
    BodyTable,
    HistoryTable,
    PointMassTable,
    SceneTable,
    SharedKeys,
    StartTable,
    check,
)
from pliant.core.errors import BadInput, MissingExtra, PliantError
from pliant.dynamics.integrators import INTEGRATORS, Integrator
from pliant.dynamics.loads import BodyForce, Fixed, Load, Motion, PointLoad, Pressure, Traction
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.dynamics.point_mass import PointMass
from pliant.dynamics.scene import Scene
from pliant.dynamics.start import Start
from pliant.fem.bodies.body import DEFAULT_ORDER, Body
from pliant.fem.bodies.grid_body import GridBody
from pliant.fem.bodies.tet_body import TetBody
from pliant.fem.laws.tables import law_of
from pliant.fem.material import Branch, Material
from pliant.fem.material_regions import NUMBERS, MaterialRegion
from pliant.geometry.describe import shape_from_dict
from pliant.geometry.field_files import field_suffix
from pliant.geometry.shape import Shape

BodyMaker = Callable[[Shape | None, BodyTable, str], Body]
"""Makes the body of a shape and a table; the text is the name of a part, of one of several."""


def build_scene(
    description: Mapping[str, Any], *, name: str = "", make_body: BodyMaker | None = None
) -> Scene:
    """The scene of a dictionary; `name` begins the error messages (a file or a built-in name).

    With a key `kind` it is another world than one of finite elements (app.describing.world_files).

    With a key `parts` it is of several bodies (app.describing.parts_files).

    make_body(shape, table, part): how a body is made, if not by GridBody or TetBody; a resumed run
    hands back the mesh it started with.
    """
    start = f"{name}: " if name else ""
    try:
        if "kind" in description:
            from pliant.app.describing.world_files import (
                build_world,  # which makes bodies as scenes do
            )

            return build_world(description, make_body or made_body)
        if "parts" in description:
            from pliant.app.describing.parts_files import build_parts  # made as one body is

            return build_parts(description, make_body or made_body)
        table = check(dict(description))
        return _scene(table, make_body or made_body)
    except MissingExtra:
        raise
    except PliantError as error:
        raise type(error)(f"{start}{error}") from error


def _scene(table: SceneTable, make_body: BodyMaker) -> Scene:
    # everything small first: a wrong key must not wait for a large mesh
    begun = begun_body(table)
    integrator = integrator_of(table)
    obstacles = obstacles_of(table)
    body, options, source = begun(make_body)
    require_dim(obstacles, body)
    return Scene(
        body,
        **options,
        gravity=tuple(table.gravity),
        obstacles=obstacles,
        contact=ContactLaw(**table.contact.model_dump()),
        integrator=integrator,
        numbers=table.numbers,
        initial_velocity=tuple(table.initial_velocity),
        initial_spin=tuple(table.initial_spin),
        start=_start(table.start),
        tolerance=table.tolerance,
        preconditioner=table.preconditioner,
        source={
            "title": table.title,
            "description": table.description,
            "steps": table.steps,
            **source,
        },
    )


Begun = Callable[..., tuple[Body, dict[str, Any], dict[str, Any]]]
"""Given a BodyMaker, and a part's name, the body, what it is made of and what holds it as options
of a Scene or a Part, and what it was described by.
"""


def begun_body(table: BodyKeys) -> Begun:
    """A body of which everything but the cells is made and checked."""
    shape = None
    if table.body.file is None:
        if table.shape is None:
            raise BadInput("shape: this table is missing; a scene needs a body's shape.")
        shape = described_shape(table.shape)
    elif table.shape is not None:
        raise BadInput("body.file: there is a [shape] already; give only one of the two.")
    options: dict[str, Any] = {
        "material": _material(table), "law": law_of(table.law), "model": table.model,
        "dilatation": table.dilatation,
        "fixed": [_fixed(table, i) for i in range(len(table.fixed))],
        "loads": [_load(table, i) for i in range(len(table.loads))],
    }  # fmt: skip

    def finish(make_body: BodyMaker, part: str = ""):
        body = make_body(shape, table.body, part)
        for kind in ("fixed", "loads"):
            for i, item in enumerate(options[kind]):
                _same_dim(f"{kind}[{i}].region", getattr(item, "region", None), body)
        attached = [_mass(a, i, body) for i, a in enumerate(table.attached)]
        source = {
            "shape": shape.to_dict() if shape is not None else None,
            "body": table.body.model_dump(exclude_none=True),
            "made": body,
        }
        return body, {**options, "attached": attached}, source

    return finish


def _mass(table: PointMassTable, number: int, body: Body) -> PointMass:
    point = None if table.point is None else tuple(table.point[: body.dim])
    region = None
    if table.region is not None:
        region = _shape(table.region, f"attached[{number}].region")
        _same_dim(f"attached[{number}].region", region, body)
    return PointMass(table.mass, point, region)


def _start(table: str | StartTable) -> Start | str:
    if isinstance(table, str):
        return table
    reference = None if table.reference is None else Material(**table.reference.model_dump())
    return Start(table.kind, table.modes, table.amplitudes, table.velocities, reference)


_measured: dict[str, Shape] = {}
"""The shape that was measured last, until its body is made: it is read, and warned of, once."""


def measured_shape(description: Mapping[str, Any]) -> Shape:
    """The shape of a scene's table `shape`, looked at before the scene is built of it."""
    shape = described_shape(description)
    _measured.clear()
    _measured[repr(_typed(description))] = shape
    return shape


def described_shape(description: Mapping[str, Any]) -> Shape:
    """The shape of a scene's table `shape`."""
    found = _measured.pop(repr(_typed(description)), None)
    return _shape(description, "shape") if found is None else found


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


def made_body(shape: Shape | None, table: BodyTable, part: str = "") -> Body:
    """Of the cells that a table asks for."""
    if table.kind == "tets":
        if table.spacing is not None:
            raise BadInput("body.spacing: tets have an edge_length, not a spacing.")
        if table.subdivisions is not None:
            raise BadInput("body.subdivisions: only the cells of a grid are subdivided.")
        if table.axes is not None:
            raise BadInput("body.axes: only a grid has a lattice that lies along axes.")
        if table.pieces is not None:
            raise BadInput("body.pieces: only a grid is made of some of its pieces.")
        order = DEFAULT_ORDER if table.order is None else table.order
        return _within("body", lambda: TetBody(shape or table.file, table.edge_length, order=order))
    if table.edge_length is not None:
        raise BadInput("body.edge_length: a grid has a spacing, not an edge_length.")
    if table.order is not None:
        raise BadInput('body.order: only a body of kind = "tets" has an order.')
    if shape is None:
        raise BadInput('body.file: only a body of kind = "tets" can come from a mesh file.')
    given = {"axes": table.axes, "pieces": table.pieces}
    options: dict = {name: value for name, value in given.items() if value is not None}
    _within("body", lambda: require_room(shape, table.spacing))
    return _within(
        "body",
        lambda: GridBody(shape, table.spacing, subdivisions=table.subdivisions, **options),
    )


def _within(place: str, make: Callable[[], Any]) -> Any:
    """Errors of `make` with the key in front."""
    try:
        return make()
    except MissingExtra:
        raise
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def _material(table: BodyKeys) -> Material:
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
            [Branch(b.modulus, b.time) for b in m.branches],
            [_region(table, i) for i in range(len(m.regions))],
        )  # fmt: skip
        if m.damping_frequencies is None or m.damping_ratios is None:
            return base
        f, r = m.damping_frequencies, m.damping_ratios
        return base.with_damping_ratios(frequencies=(f[0], f[1]), ratios=(r[0], r[1]))

    return _within("material", make)


def _region(table: BodyKeys, i: int) -> MaterialRegion:
    t, where = table.material.regions[i], f"regions[{i}]"
    if (t.shape is None) == (t.label is None):
        raise BadInput(f"{where}: give a shape, or the label that it has in the scene's volume.")
    described = t.shape
    if described is None:
        described = _labelled(table.shape, t.label)
        if described is None:
            raise BadInput(
                f"{where}.label: the scene's [shape] is no volume of labels; give a shape, "
                'such as {file = "labels.nrrd", label = 2}.'
            )
    numbers = {name: getattr(t, name) for name in NUMBERS}
    shape = _shape(described, f"{where}.shape" if t.shape is not None else where)
    return _within(where, lambda: MaterialRegion(shape, **numbers))


def _labelled(value: Any, label: Any) -> dict[str, Any] | None:
    """A shape's table with another label in the one volume that it is made from, or None."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("file"), str) and field_suffix(Path(value["file"])):
        return {k: v for k, v in value.items() if k != "level"} | {"label": label, "nearest": True}
    found = {k: new for k, v in value.items() if (new := _labelled(v, label)) is not None}
    return {**value, **found} if len(found) == 1 else None


def integrator_of(table: SharedKeys) -> Integrator:
    """The scheme that the bodies of a scene are stepped by."""
    t = table.integrator
    named = {"Newmark1": "theta", "HHT": "alpha", "GeneralisedAlpha": "spectral_radius"}
    options = {k: v for k in named.values() if (v := getattr(t, k)) is not None}
    known = named.get(t.type)
    for key in options:
        if key != known:
            has = f"its parameter is {known}" if known else "it has no parameters"
            raise BadInput(f"integrator.{key}: {t.type} does not take this; {has}.")
    return _within("integrator", lambda: INTEGRATORS[t.type](t.dt, **options))


def _fixed(table: BodyKeys, i: int) -> Fixed:
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
    shift = tuple(t.shift or ())
    return _within(where, lambda: Fixed(region, displacement, t.axes, t.stiffness, shift))


def _load(table: BodyKeys, i: int) -> Load:
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


def obstacles_of(table: SharedKeys) -> list[Plane | Obstacle]:
    """What the bodies of a scene may hit."""
    return [_obstacle(table, i) for i in range(len(table.obstacles))]


def require_dim(obstacles: Sequence[Plane | Obstacle], body: Body) -> None:
    """Refuse plane obstacles of bodies in space, and the other way round."""
    for i, item in enumerate(obstacles):
        _same_dim(f"obstacles[{i}].shape", getattr(item, "shape", None), body)


def _obstacle(table: SharedKeys, i: int) -> Plane | Obstacle:
    t, where = table.obstacles[i], f"obstacles[{i}]"
    if t.type == "plane":
        return _within(where, lambda: Plane(tuple(t.normal), t.offset))
    return Obstacle(_shape(t.shape, f"{where}.shape"), t.spacing)


def _same_dim(where: str, shape: Shape | None, body: Body) -> None:
    if shape is not None and shape.dim != body.dim:
        raise BadInput(f"{where}: this shape is {shape.dim}D, but the body is {body.dim}D.")
