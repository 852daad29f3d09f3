"""Worlds that are not made of finite elements as TOML: `kind`, their fields, their body.

    kind = "pendulum"      # dynamics.worlds
    steps = 60             # title, description and steps as in any scene file
    length = 0.7           # the fields of the class: numbers, texts, short lists
    [shape]                # and [body], unless the class brings a body

Keys that no field has and values that no field can hold are refused, each with its key.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from pliant.app.describing.scene_building import BodyMaker, described_shape
from pliant.app.describing.scene_description import origin_of
from pliant.app.describing.scene_model import check
from pliant.core.errors import BadInput, PliantError
from pliant.core.numbers import LARGEST, shown
from pliant.dynamics.model import World
from pliant.dynamics.worlds import kind_of, world_class

WORDS = ("title", "description", "steps")
BODY = ("shape", "body")
LONGEST = 1000
"""Entries of a list; more belong into a file of their own."""


def build_world(description: Mapping[str, Any], make_body: BodyMaker) -> Any:
    """The world of a dictionary with a `kind`."""
    kind = description["kind"]
    if not isinstance(kind, str):
        raise BadInput(f"kind: it must be a text in quotes, not {kind!r}.")
    cls = world_class(kind)
    own = _own_fields(cls)
    known = ["kind", *WORDS, *(BODY if _body_field(cls) is not None else ()), *own]
    for key in description:
        if key in BODY and key not in known:
            raise BadInput(f"{key}: a {kind} brings its own body.")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}."
            raise BadInput(f"{key}: there is no such key; {hint}")
    usual = check({k: description[k] for k in (*WORDS, *BODY) if k in description})
    hints = _hints(cls)
    given = {n: _value(n, description[n], hints[n]) for n in own if n in description}
    for name, f in own.items():
        if name not in description and f.default is MISSING and f.default_factory is MISSING:
            raise BadInput(f"{name}: this key is missing.")
    source: dict[str, Any] = {k: getattr(usual, k) for k in WORDS}
    if any(k in description for k in BODY) or _needs_body(cls):
        if usual.shape is None and usual.body.file is None:
            raise BadInput(f"shape: this table is missing; a {kind} needs a body's shape.")
        if usual.shape is not None and usual.body.file is not None:
            raise BadInput("body.file: there is a [shape] already; give only one of the two.")
        shape = None if usual.shape is None else described_shape(usual.shape)
        body = given["body"] = make_body(shape, usual.body, "")
        source |= {
            "shape": shape.to_dict() if shape is not None else None,
            "body": usual.body.model_dump(exclude_none=True),
            "made": body,
        }
    try:
        make: Any = cls  # register_world has seen that it has a field `source`
        return make(**given, source=source)
    except PliantError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:  # what the class's own checks raise
        raise BadInput(f"{kind}: {error}") from error


def describe_world(world: World) -> dict[str, Any]:
    """Plain values from which `build_world` makes the same world again."""
    told = world.source or {}
    cls = type(world)
    result: dict[str, Any] = {"kind": kind_of(world)}
    result |= {k: told[k] for k in WORDS if told.get(k) or (k == "steps" and k in told)}
    for name, f in _own_fields(cls).items():
        value = getattr(world, name)
        if value is None and f.default is None:
            continue  # TOML has no word for nothing
        result[name] = _plain(name, value)
    brought = _body_field(cls)
    if brought is not None and world.body is not brought.default:
        origin = origin_of(world)
        result |= {k: origin[k] for k in BODY if origin.get(k) is not None}
    return result


def _body_field(cls: type[World]) -> Field[Any] | None:
    return next((f for f in fields(cls) if f.name == "body"), None)  # pyright: ignore


def _needs_body(cls: type[World]) -> bool:
    f = _body_field(cls)
    return f is not None and f.default is MISSING and f.default_factory is MISSING


def _own_fields(cls: type[World]) -> dict[str, Field[Any]]:
    """The fields that a file may set."""
    every = fields(cls)  # pyright: ignore[reportArgumentType]
    return {f.name: f for f in every if f.init and f.name not in ("body", "source")}


def _hints(cls: type[World]) -> dict[str, Any]:
    """Types of the fields; of one whose type cannot be told, the type of its default."""
    try:
        told = get_type_hints(cls)
    except (NameError, TypeError, AttributeError):  # names that only a type checker imports
        told = {}
    hints = {}
    for name, f in _own_fields(cls).items():
        unknown = Any if f.default is MISSING or f.default is None else type(f.default)
        hints[name] = unknown if told.get(name, Any) is Any else told[name]
    return hints


# --- values


def _value(place: str, value: Any, hint: Any) -> Any:
    """A value of a file as a field of this type holds it; BadInput names the place."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(place, value, [h for h in inner if h is not NoneType])
    if origin is Literal:
        if value not in inner:
            known = ", ".join(repr(choice) for choice in inner)
            raise BadInput(f"{place}: it must be one of {known}, not {value!r}.")
        return value
    kind = origin or hint
    if kind in SIMPLE:
        words, fits, made = SIMPLE[kind]
        if not fits(value):
            raise BadInput(f"{place}: it must be {words}, not {shown(value)}.")
        return made(value)
    if isinstance(kind, type) and issubclass(kind, Sequence | np.ndarray):
        return _list(place, value, kind, inner)
    return _plain(place, value)  # a type of the author's own: the class says what it takes


def _one_of(place: str, value: Any, hints: Sequence[Any]) -> Any:
    complaint = BadInput(f"{place}: nothing can be written here.")
    for hint in hints:
        try:
            return _value(place, value, hint)
        except BadInput as error:
            complaint = error
    raise complaint


def _list(place: str, value: Any, kind: type, inner: tuple[Any, ...]) -> Any:
    """A list of numbers, or of what the type says; a tuple of fixed length has that length."""
    if not isinstance(value, list):
        raise BadInput(f"{place}: it must be a list, not {shown(value)}.")
    if len(value) > LONGEST:
        raise BadInput(f"{place}: it must have at most {LONGEST} entries, not {len(value)}.")
    if issubclass(kind, np.ndarray):
        array = np.array(_plain(place, value), dtype=object)
        for entry in array.reshape(-1):
            _value(place, entry, float)
        return array.astype(float)
    hints = list(inner) or [Any]
    if issubclass(kind, tuple) and hints[-1] is not Ellipsis and inner:
        if len(value) != len(hints):
            raise BadInput(f"{place}: it must have {len(hints)} entries, not {len(value)}.")
    else:
        hints = [hints[0]] * len(value)
    made = [
        _value(f"{place}[{i}]", v, h) for i, (v, h) in enumerate(zip(value, hints, strict=True))
    ]
    return made if issubclass(kind, list) else tuple(made)


def _plain(place: str, value: Any) -> Any:
    """Numbers, texts and lists of them."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(f"{place}[{i}]", v) for i, v in enumerate(value)]
    if isinstance(value, bool | str | int):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    raise BadInput(f"{place}: a file holds finite numbers, texts and lists, not {shown(value)}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return (_is_whole(value) or isinstance(value, float)) and bool(abs(value) <= LARGEST)


SIMPLE: dict[Any, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    float: ("a finite number", _is_number, float),
    int: ("a whole number", _is_whole, int),
    bool: ("true or false", lambda v: isinstance(v, bool), bool),
    str: ("a text in quotes", lambda v: isinstance(v, str), str),
}
"""Types of fields: what they are called, what fits, and what it becomes."""
