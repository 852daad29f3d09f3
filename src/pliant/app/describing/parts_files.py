"""Scenes of several bodies as TOML: [[parts]], each as a scene of one body is, and what they share.

Shared are the words, steps, gravity, tolerance, preconditioner, [integrator], [contact] and
[[obstacles]]; a part has a name, position, velocity and spin, and the rest as [parts.shape],
[parts.body], [parts.material], [[parts.fixed]] and so on.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field

from pliant.app.describing.scene_building import (
    BodyMaker,
    begun_body,
    integrator_of,
    made_body,
    obstacles_of,
    require_dim,
)
from pliant.app.describing.scene_description import (
    body_entries,
    contact_entry,
    held_entries,
    integrator_entry,
    obstacle_entries,
    origin_of,
    plain,
    words_of,
)
from pliant.app.describing.scene_model import (
    BodyKeys,
    BodyTable,
    SceneTable,
    SharedKeys,
    Vector,
    require_known,
    validated,
)
from pliant.core.errors import BadInput, MissingExtra
from pliant.dynamics.obstacles import ContactLaw
from pliant.dynamics.parts.part import Part
from pliant.dynamics.parts.parts_scene import LARGEST_COUNT, PartsScene
from pliant.fem.bodies.body import Body
from pliant.geometry.shape import Shape

ELSEWHERE = {"initial_velocity": "velocity", "initial_spin": "spin"}
"""Keys of a scene of one body that parts call otherwise."""


class PartTable(BodyKeys):
    """[[parts]]: see Part."""

    name: Annotated[str, Field(max_length=100)]
    position: Vector = [0.0, 0.0, 0.0]
    velocity: Vector = [0.0, 0.0, 0.0]
    spin: Vector = [0.0, 0.0, 0.0]
    rigid: bool = False


class PartsTable(SharedKeys):
    """A whole scene file of several bodies."""

    parts: Annotated[list[PartTable], Field(min_length=1, max_length=LARGEST_COUNT)]


def check_parts(description: Mapping[str, Any]) -> PartsTable:
    """The checked tables; a BadInput names the full key and what to write instead."""
    for key in description:
        if key in SceneTable.model_fields and key not in PartsTable.model_fields:
            own = ELSEWHERE.get(key, key)
            if own in PartTable.model_fields:
                raise BadInput(f"{key}: in a scene of parts this is parts[0].{own}, of each part.")
            raise BadInput(f"{key}: a scene of parts has none; all parts begin as they are made.")
    table = validated(PartsTable, dict(description))
    require_known("integrator", table.integrator.type, "integrator.type")
    for i, part in enumerate(table.parts):
        require_known("model", part.model, f"parts[{i}].model")
    return table


def build_parts(description: Mapping[str, Any], make_body: BodyMaker) -> Any:
    """The PartsScene of a dictionary with `parts`."""
    table = check_parts(description)
    integrator, obstacles = integrator_of(table), obstacles_of(table)
    begun, parts, once = [], [], _OnceEach(make_body)
    for i, own in enumerate(table.parts):
        with _part_named(i):
            begun.append(begun_body(own))
    for i, own in enumerate(table.parts):
        with _part_named(i):
            body, options, source = begun[i](once, own.name)
            placed: dict[str, Any] = {
                k: tuple(getattr(own, k)) for k in ("position", "velocity", "spin")
            }
            placed["rigid"] = own.rigid
            parts.append(Part(own.name, body, **options, **placed, source=source))
    require_dim(obstacles, parts[0].body)
    return PartsScene(
        parts, gravity=tuple(table.gravity), obstacles=obstacles,
        contact=ContactLaw(**table.contact.model_dump()), integrator=integrator,
        tolerance=table.tolerance, preconditioner=table.preconditioner,
        source={"title": table.title, "description": table.description, "steps": table.steps},
    )  # fmt: skip


@contextmanager
def _part_named(number: int) -> Iterator[None]:
    """Errors with the part's place in front."""
    try:
        yield
    except BadInput as error:
        if isinstance(error, MissingExtra):
            raise
        text = str(error)
        own = text.startswith("parts: ")
        text = f": {text.removeprefix('parts: ')}" if own else f".{text}"
        raise BadInput(f"parts[{number}]{text}") from error


class _OnceEach:
    """Makes equal bodies once: a heap of thirty balls has one, at thirty places."""

    def __init__(self, make_body: BodyMaker):
        self._make = make_body
        self._made: dict[str, Body] = {}

    def __call__(self, shape: Shape | None, table: BodyTable, part: str) -> Body:
        if table.kind != "grid" and self._make is not made_body:
            return self._make(shape, table, part)  # meshes of a run, each as it was stored
        key = repr((None if shape is None else shape.to_dict(), table.model_dump()))
        if key not in self._made:
            self._made[key] = self._make(shape, table, part)
        return self._made[key]


def describe_parts(scene: PartsScene) -> dict[str, Any]:
    """Plain values from which `build_parts` makes the same scene again."""
    return {
        **words_of(scene.source or {}),
        "gravity": plain(scene.gravity),
        "tolerance": scene.tolerance,
        "preconditioner": scene.preconditioner,
        "integrator": integrator_entry(scene),
        **obstacle_entries(scene),
        "contact": contact_entry(scene),
        "parts": [
            _described(part, own, i)
            for i, (part, own) in enumerate(zip(scene.parts, scene.scenes, strict=True))
        ],
    }


def _described(part: Part, own: Any, number: int) -> dict[str, Any]:
    """own: the part as a scene."""
    with _part_named(number):
        return {
            "name": part.name,
            **{k: plain(getattr(part, k)) for k in ("position", "velocity", "spin")},
            **({"rigid": True} if part.rigid else {}),
            **own.constitution.entries(),
            "dilatation": part.dilatation,
            **body_entries(part, origin_of(part)),
            **held_entries(part),
        }
