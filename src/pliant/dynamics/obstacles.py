"""Things a body may hit: anything with a signed distance."""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.shape import Shape

KINDS = ("springs", "barrier")
"""Of contact."""


@dataclass(frozen=True)
class Plane:
    """The ground normal . x = offset; bodies stay where normal . x >= offset."""

    normal: tuple[float, ...] = (0.0, 1.0, 0.0)
    offset: float = 0.0

    def __post_init__(self):
        n = np.asarray(self.normal, float)
        length = np.linalg.norm(n)
        if not (np.isfinite(length) and length > 0.0) or not np.isfinite(self.offset):
            raise BadInput(f"A plane needs a normal of positive length, not {self.normal}.")
        object.__setattr__(self, "normal", tuple(float(c) for c in n / length))


@dataclass(frozen=True)
class Obstacle:
    """A solid shape; bodies stay outside. Sampled at `spacing` [m] (the body's by default)."""

    shape: Shape
    spacing: float | None = None


@dataclass(frozen=True)
class ContactLaw:
    """Softmin springs (seed 000, section 2.8), per area so that the mesh does not matter.

    pressure(d) = stiffness * ln(1 + exp(-sharpness (d + margin))) / sharpness, for the distance d
    to the obstacle. stiffness [Pa/m] defaults to 20 times Young's modulus over the spacing;
    sharpness [1/m] to 10 over the spacing. margin [m], where none of the three is given, is such
    that a body which just touches feels the pressure of its own weight, and is not pushed off; else
    half a spacing, or 0 with a sharpness of its own. friction: Coulomb coefficient, smoothed below
    slip_speed [m/s].

    kind: "springs", or "barrier", of scenes of parts: no surface passes through another (Li et al.
    2020; dynamics.parts.barrier). Its stiffness is a pressure [Pa], a tenth of the softest part's
    Young's modulus by default, and it sets in at the distance gap [m], by default a tenth of the
    smallest spacing, or less where parts begin nearer to each other; sharpness and margin are those
    of springs. self_contact: whether a part may touch itself, by a barrier.
    """

    stiffness: float | None = None
    sharpness: float | None = None
    margin: float | None = None
    friction: float = 0.0
    slip_speed: float = 1e-3
    kind: str = "springs"
    gap: float | None = None
    self_contact: bool = False

    @property
    def is_barrier(self) -> bool:
        """Whether surfaces are kept apart, instead of being pushed out of each other."""
        return self.kind == "barrier"

    def __post_init__(self):
        if self.kind not in KINDS:
            raise BadInput(f"Contact kind must be one of {', '.join(KINDS)}, not {self.kind!r}.")
        if self.is_barrier and (self.sharpness is not None or self.margin is not None):
            raise BadInput("Contact: sharpness and margin are those of springs; a barrier has gap.")
        if not self.is_barrier and self.gap is not None:
            raise BadInput("Contact: a gap is that of a barrier; springs have a margin.")
        if not self.is_barrier and self.self_contact:
            raise BadInput("Contact: self_contact needs kind = 'barrier'.")
        for name in ("stiffness", "sharpness", "slip_speed", "gap"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise BadInput(f"Contact {name} must be positive, not {value}.")
        if self.margin is not None and not np.isfinite(self.margin):
            raise BadInput(f"Contact margin must be a length, not {self.margin}.")
        if not (np.isfinite(self.friction) and self.friction >= 0.0):
            raise BadInput(f"Contact friction must not be negative, not {self.friction}.")
