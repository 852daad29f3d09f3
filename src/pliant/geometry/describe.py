"""Shapes from plain dictionaries, as scene files write them."""

import difflib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pliant.core.errors import BadInput, MissingExtra
from pliant.geometry.shape import Shape

MAX_DEPTH = 64
"""Nesting allowed in a description; a deeper one is a mistake or an attack on the stack."""

_CONSTRUCTORS: dict[str, Callable[..., Shape]] = {}

F = TypeVar("F", bound=Callable[..., Shape])


def describes(name: str) -> Callable[[F], F]:
    """Decorator: dictionaries with this "type" are built by the decorated constructor.

    The constructor's parameter names are the dictionary's keys.
    """

    def register(constructor: F) -> F:
        _CONSTRUCTORS[name] = constructor
        return constructor

    return register


def shape_types() -> list[str]:
    """The names that may stand under "type", sorted."""
    import pliant.geometry.shapes  # noqa: F401  (importing it registers every constructor)

    return sorted(_CONSTRUCTORS)


def shape_from_dict(
    description: Mapping[str, Any], *, folder: str | Path | None = None, where: str = "shape"
) -> Shape:
    """The shape that a dictionary with a "type" key describes; inverse of `Shape.to_dict`.

    folder: what relative paths under "file" are relative to (the scene file's folder).
    where: how error messages call the place of this dictionary, e.g. "bodies[0].shape".
    """
    return _build(description, Path(folder) if folder is not None else None, where, 0)


def _build(description: Any, folder: Path | None, where: str, depth: int) -> Shape:
    if depth > MAX_DEPTH:
        raise BadInput(f"{where}: shapes are nested deeper than {MAX_DEPTH}; flatten the booleans.")
    if not isinstance(description, Mapping):
        kind = type(description).__name__
        raise BadInput(f'{where}: expected a table with a "type" key, got {kind}.')
    names = shape_types()
    name = description.get("type")
    if name is None:
        raise BadInput(f'{where}: the key "type" is missing; known types: {", ".join(names)}.')
    if not isinstance(name, str) or name not in _CONSTRUCTORS:
        raise BadInput(f"{where}: unknown type {name!r}{suggestion(str(name), names)}")
    constructor = _CONSTRUCTORS[name]
    parameters = inspect.signature(constructor).parameters
    arguments: list[Shape] = []
    options: dict[str, Any] = {}
    for key, value in description.items():
        if key == "type":
            continue
        if key not in parameters:
            known = [*parameters]
            raise BadInput(f"{where}: {name} has no key {key!r}{suggestion(str(key), known)}")
        place = f"{where}.{key}"
        if parameters[key].kind is inspect.Parameter.VAR_POSITIONAL:
            if not isinstance(value, list | tuple):
                raise BadInput(f"{place}: expected a list of shapes.")
            arguments = [
                _build(item, folder, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)
            ]
        elif parameters[key].annotation in (Shape, "Shape"):
            options[key] = _build(value, folder, place, depth + 1)
        elif key == "file":
            options[key] = _resolved(value, folder, place)
        else:
            options[key] = value
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in options and key not in description:
            raise BadInput(f"{where}: {name} needs the key {key!r}.")
    try:
        return constructor(*arguments, **options)
    except MissingExtra:
        raise
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _resolved(value: Any, folder: Path | None, place: str) -> str:
    if not isinstance(value, str | Path):
        raise BadInput(f"{place}: expected a path, got {value!r}.")
    path = Path(value)
    return str(path if folder is None or path.is_absolute() else folder / path)


def suggestion(word: str, known: list[str]) -> str:
    """Text like ": did you mean 'sphere'?", or the list of known names when none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f": did you mean {near[0]!r}?"
    return f"; known: {', '.join(known)}."
