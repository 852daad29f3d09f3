"""Numbers from people and files, checked in one place: real, finite, of a size that can be used.

Squares and products of a few quantities must stay finite in double precision, so nothing beyond
LARGEST is taken, in metres, pascals or seconds; what must be positive is at least SMALLEST. No body
comes near either.
"""

import math
from typing import Any

from pliant.core.errors import BadInput

LARGEST = 1e30
SMALLEST = 1e-30

WHOLE = 2**63
"""Whole numbers in files and options lie below it, as TOML demands."""


def number(owner: str, name: str, value: Any) -> float:
    """A float up to LARGEST; `owner` and `name` say in the message which argument was wrong."""
    if isinstance(value, bool | str | bytes):
        raise BadInput(f"{owner}: {name} must be a number, got {shown(value)}.")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{owner}: {name} must be a number, got {shown(value)}.") from error
    if not math.isfinite(result):
        raise BadInput(f"{owner}: {name} must be finite, got {shown(value)}.")
    if abs(result) > LARGEST:
        raise BadInput(f"{owner}: {name} must be at most {LARGEST:g}, got {shown(value)}.")
    return result


def positive(owner: str, name: str, value: Any) -> float:
    """A number of at least SMALLEST."""
    result = number(owner, name, value)
    if result <= 0.0:
        raise BadInput(f"{owner}: {name} must be greater than zero, got {shown(value)}.")
    if result < SMALLEST:
        raise BadInput(f"{owner}: {name} must be at least {SMALLEST:g}, got {shown(value)}.")
    return result


def not_negative(owner: str, name: str, value: Any) -> float:
    """A number, zero or above."""
    result = number(owner, name, value)
    if result < 0.0:
        raise BadInput(f"{owner}: {name} must not be negative, got {shown(value)}.")
    return result


def shown(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    if isinstance(value, int) and not -WHOLE <= value < WHOLE:
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def require_plain(value: Any, *, deepest: int) -> None:
    """Refuse tables with a whole number beyond WHOLE, an infinite one, or nested too deeply.

    value: what a TOML or JSON parser made; the message begins with the key.
    """
    stack: list[tuple[Any, str, int]] = [(value, "", 1)]
    while stack:
        item, place, level = stack.pop()
        if isinstance(item, dict | list):
            if level > deepest:
                raise BadInput("its tables are nested too deeply; flatten them.")
            entries = item.items() if isinstance(item, dict) else enumerate(item)
            stack.extend((inner, _key(place, key), level + 1) for key, inner in entries)
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise BadInput(f"{place}: it must be a finite number, not {item}.")
        elif isinstance(item, int) and not -WHOLE <= item < WHOLE:
            raise BadInput(f"{place}: {shown(item)} cannot be used; write at most 18 digits.")


def _key(place: str, key: Any) -> str:
    if isinstance(key, int):
        return f"{place}[{key}]"
    return f"{place}.{key[:60]}" if place else str(key)[:60]
