"""Parameters of a material law as unknowns, named `law.<parameter>`."""

from dataclasses import dataclass, replace

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.law_system import LawSystem, scene_law
from pliant.dynamics.scene import Scene
from pliant.inverse.law_direction import LawDirection, moduli_slopes
from pliant.inverse.unknown import Unknown

PREFIX = "law."


@dataclass(frozen=True)
class LawParameter(Unknown):
    """One parameter of the scene's law, uniform over the body.

    It keeps the sign of its start and moves by the logarithm of its size, so that moduli stay
    moduli; a parameter that starts at zero moves on its own scale.
    """

    def _sign(self) -> float:
        return float(np.sign(self.start[0]))

    def coordinates(self, value):
        """q of a value."""
        value = np.asarray(value, float).reshape(-1)
        if self._sign() == 0.0:
            return value
        if not (value * self._sign() > 0.0).all():
            raise BadInput(f"{self.name} must keep the sign of its start, {self.start[0]:g}.")
        return np.log(np.abs(value))

    def value(self, q):
        """Value at q."""
        return np.asarray(q, float) if self._sign() == 0.0 else self._sign() * np.exp(q)

    def slope(self, q):
        """d value / d q."""
        return np.ones(1) if self._sign() == 0.0 else self.value(q)

    def apply(self, scene: Scene, q) -> Scene:
        """The scene with this parameter in its law."""
        law = scene_law(scene)
        value = float(self.value(q)[0])
        return replace(scene, law=law.replace(**{self.name.removeprefix(PREFIX): value}))

    def directions(self, system, q):
        """The law's parameter, and the small-strain moduli that follow it."""
        if not isinstance(system, LawSystem):
            raise BadInput(f"{self.name} is unknown, but the scene has no law.")
        j = list(system.law.values).index(self.name.removeprefix(PREFIX))
        slope = float(self.slope(q)[0])
        d = LawDirection.of(system)
        d.law[:, j] = slope
        by_lam, by_mu = moduli_slopes(system.law, len(system.lam))
        d.lam, d.mu = slope * by_lam[:, j], slope * by_mu[:, j]
        if system.contact is not None and system.contact.stiffness_per_modulus > 0.0:
            l, m = system.lam, system.mu
            # E = mu (3 lambda + 2 mu) / (lambda + mu)
            by_l = m**2 / (l + m) ** 2
            by_m = (3.0 * l**2 + 4.0 * l * m + 2.0 * m**2) / (l + m) ** 2
            change = float(np.mean(by_l * d.lam + by_m * d.mu))
            d.contact_stiffness = system.contact.stiffness_per_modulus * change
        return [d]


def make_law_unknown(name: str, start, scene: Scene) -> LawParameter:
    """`law.c10` and the like, of a scene with a law."""
    if scene.law is None:
        raise BadInput(f"'{name}' is unknown, but the scene has no law: give Scene(law=...).")
    law = scene_law(scene)
    parameter = name.removeprefix(PREFIX)
    if parameter not in law.values:
        known = ", ".join(PREFIX + n for n in law.values)
        raise BadInput(f"The law '{law.name}' has no parameter '{parameter}'. Known: {known}.")
    value = np.atleast_1d(np.asarray(start, float))
    if len(value) != 1 or not np.isfinite(value).all():
        raise BadInput(f"The start of {name} must be one finite number.")
    return LawParameter(name, value, (name,))
