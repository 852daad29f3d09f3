"""Lengths for people to read: "6.02 mm" instead of "0.00602 m"."""

import math

UNITS = ((1e3, "km"), (1.0, "m"), (1e-3, "mm"), (1e-6, "um"), (1e-9, "nm"))
"""Metres in each unit, the largest first; um: micrometres, in letters that every terminal has."""

FROM = {"km": 1e4, "m": 0.1, "mm": 1e-4, "um": 1e-7, "nm": 0.0}
"""Metres from which a unit is used: 0.25 m, but 25 mm; 0.5 mm, but 50 um."""


def length_unit(metres: float) -> tuple[float, str]:
    """The unit that suits a length: how many metres it has, and its name."""
    size = abs(metres)
    if size == 0.0 or not math.isfinite(size):
        return 1.0, "m"
    return next((factor, name) for factor, name in UNITS if size >= FROM[name])


def length(metres: float, digits: int = 3) -> str:
    """A length [m] with a unit that suits it, to so many digits."""
    factor, name = length_unit(metres)
    return f"{rounded(metres / factor, digits)} {name}"


def place(metres, digits: int = 4) -> str:
    """Coordinates [m] in one unit: "(25, 0, 3.5) mm"."""
    values = [float(c) for c in metres]
    factor, name = length_unit(max((abs(c) for c in values), default=0.0))
    return f"({', '.join(rounded(c / factor, digits) for c in values)}) {name}"


def rounded(value: float, digits: int) -> str:
    """To so many digits, without an exponent where it can be: "100", not "1e+02"."""
    return f"{float(f'{value:.{digits}g}'):.6g}" if digits <= 6 else f"{value:.{digits}g}"
