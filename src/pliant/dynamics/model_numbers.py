"""Numbers that a model has of its own, beside the body's material: `[numbers]` in a scene file.

A model's record is a frozen dataclass whose fields are made by `number`: default, unit, range and
words stand there once; scenes, files, menus and unknowns read them.
"""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pliant.core.errors import BadInput
from pliant.core.numbers import LARGEST


@dataclass(frozen=True)
class Range:
    """What a field may hold. choices: words instead of numbers; chart: None is not to be fitted.

    whole: whole numbers only. slider: whether the editor shows it.
    """

    unit: str = ""
    low: float = 0.0
    high: float = LARGEST
    whole: bool = False
    choices: tuple[str, ...] = ()
    chart: str | None = None
    words: str = ""
    slider: bool = False


def number(default: Any, **about: Any) -> Any:
    """A field of a record of numbers; `about` is a Range."""
    return field(default=default, metadata={"range": Range(**about)})


def ranges(kind: type) -> dict[str, Range]:
    """The fields of a record's class by name."""
    return {f.name: f.metadata["range"] for f in fields(kind)}


def shown_numbers(kind: type | None) -> dict[str, tuple[Range, Any]]:
    """Range and default of the fields that a menu has a slider for."""
    if kind is None:
        return {}
    found = {f.name: (f.metadata["range"], f.default) for f in fields(kind)}
    return {name: own for name, own in found.items() if own[0].slider}


def numbers_of(kind: type | None, given: Any, model: str) -> Any:
    """The record of a model from what a scene was given: a table, a record, or None.

    A record of another model is left behind: whoever changes a scene's model gets the new one's
    defaults. Raises BadInput for what the model does not know.
    """
    if kind is None:
        if isinstance(given, Mapping) and given:
            raise BadInput(f"numbers: model = '{model}' has none of its own; leave them out.")
        return None
    if isinstance(given, kind):
        return given
    table = given if isinstance(given, Mapping) else {}
    known = ranges(kind)
    for name in table:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}."
            raise BadInput(f"numbers.{name}: model = '{model}' has no such number; {hint}")
    return kind(**{name: _checked(name, value, known[name]) for name, value in table.items()})


def plain(record: Any) -> dict[str, Any]:
    """The numbers that are not the defaults, as a file has them."""
    return {
        f.name: getattr(record, f.name)
        for f in fields(record)
        if getattr(record, f.name) != f.default
    }


def _checked(name: str, value: Any, about: Range) -> Any:
    if about.choices:
        if value not in about.choices:
            raise BadInput(f"numbers.{name}: it must be one of {', '.join(about.choices)}.")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"numbers.{name}: it must be a number, not {value!r}.")
    if about.whole and value != int(value):
        raise BadInput(f"numbers.{name}: it must be a whole number, not {value!r}.")
    if not about.low <= value <= about.high:
        raise BadInput(
            f"numbers.{name}: it must lie between {about.low:g} and {about.high:g}, not {value:g}."
        )
    return int(value) if about.whole else float(value)
