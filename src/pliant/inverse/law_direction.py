"""Directions in the parameters of a material law, and how the small-strain moduli follow them."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from pliant.complexstep.derivatives import STEP, mixed_partial
from pliant.dynamics.law_system import LawSystem
from pliant.fem.laws.law import Law
from pliant.inverse.direction import Direction


@dataclass
class LawDirection(Direction):
    """A Direction with `law`: (cells, parameters), changes of the law's own parameters.

    lam and mu are then the changes of the small-strain moduli, on which walls, ghost penalty and
    damping depend; whoever makes a direction sets them along.
    """

    law: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, system: LawSystem) -> "LawDirection":
        """Nothing changes."""
        obstacles = len(system.contact.obstacles) if system.contact is not None else 0
        still = Direction.zero(len(system.lam), system.node_count, obstacles)
        law = np.zeros((len(system.lam), len(system.law.values)))
        return cls(**{n: getattr(still, n) for n in still.__dataclass_fields__}, law=law)

    def dot(self, other: Direction) -> float:
        """Gradient times direction; a direction without `law` leaves the law alone."""
        total = 0.0
        for name in self.__dataclass_fields__:
            there = getattr(other, name, None)
            if there is not None:
                total += float(np.sum(np.asarray(getattr(self, name)) * np.asarray(there)))
        return total


def moduli_slopes(law: Law, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """d lambda / d p and d mu / d p, (cells, parameters) each, by complex steps."""
    names = list(law.values)
    lam, mu = np.zeros((cells, len(names))), np.zeros((cells, len(names)))
    for j, name in enumerate(names):
        if law.energy.lame is not None:
            record = SimpleNamespace(
                **{n: np.asarray(v, complex) + (1j * STEP if n == name else 0.0)
                   for n, v in law.values.items()}
            )  # fmt: skip
            by = [np.imag(x) / STEP for x in law.energy.lame(record)]
        else:
            by = _derived(law, name)
        lam[:, j], mu[:, j] = by
    current = np.broadcast_to(np.asarray(law.lame()[0], float), (cells,))
    lam[current <= 0.0] = 0.0  # the system does not go below zero
    return lam, mu


def _derived(law: Law, name: str):
    def psi(a, b, p):
        F = np.zeros((3, 3), object)
        for i, x in enumerate((a, b, a * 0.0 + 1.0)):
            F[i, i] = x
        record = law.record()
        setattr(record, name, p)
        return law.energy.value(F, record)

    at = [np.ones(1), np.ones(1), np.atleast_1d(np.asarray(law.values[name], float))]
    cross = mixed_partial(psi, at, [1, 1, 1])
    own = mixed_partial(psi, at, [2, 0, 1])
    return cross, 0.5 * (own - cross)


def follow_moduli(system: LawSystem) -> tuple[np.ndarray, np.ndarray] | None:
    """d p / d lambda and d p / d mu, (cells, parameters), where the law has no numbers of its own.

    Such a law takes its parameters from the material's modulus and ratio, so a direction in lambda
    and mu (of `youngs_modulus`, say) is a direction in p.
    """
    if isinstance(system.scene.law, Law):
        return None
    starts: Any = system.law.energy.starts
    assert starts is not None
    cells = len(system.lam)
    lam, mu = system.material.lame(cells)
    out = []
    for d_lam, d_mu in ((1j * STEP, 0.0), (0.0, 1j * STEP)):
        l, m = lam + d_lam, mu + d_mu
        E, nu = m * (3.0 * l + 2.0 * m) / (l + m), l / (2.0 * (l + m))
        values = starts(E, nu)
        out.append(
            np.stack([np.broadcast_to(np.imag(values[n]) / STEP, (cells,))
                      for n in system.law.values], axis=1)
        )  # fmt: skip
    return out[0], out[1]
