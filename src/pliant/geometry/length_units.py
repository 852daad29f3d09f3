"""Units of length in which files state shapes; everything read from them is in metres."""

from typing import Any

from pliant.core.errors import BadInput

METRES = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}
"""Of each unit that may be asked for."""

STATED = {
    "mm": 1e-3, "millimeter": 1e-3, "millimeters": 1e-3, "millimetre": 1e-3, "millimetres": 1e-3,
    "cm": 1e-2, "centimeter": 1e-2, "centimeters": 1e-2, "m": 1.0, "meter": 1.0, "meters": 1.0,
    "metre": 1.0, "metres": 1.0, "um": 1e-6, "\u00b5m": 1e-6, "\u03bcm": 1e-6, "micron": 1e-6,
    "microns": 1e-6, "micrometer": 1e-6, "micrometers": 1e-6,
}  # fmt: skip
"""Metres of the units that headers of files name."""

WIDE = 20.0
"""Metres from which a volume that does not say its unit is thought to be of millimetres."""


def unit_length(units: Any) -> float:
    """Metres of "mm", "cm" or "m"."""
    if not isinstance(units, str) or units not in METRES:
        raise BadInput(f'units must be "mm", "cm" or "m", not {units!r}.')
    return METRES[units]


def stated_length(name: Any) -> float | None:
    """Metres of a unit as a header names it; None for any other word."""
    return STATED.get(str(name).strip().strip('"').lower())
