"""Where the energy of a body is, where it went, and whether some came from nowhere.

Between two states of a run

    kinetic + elastic + gravity + contact + damping + rubbing + scheme = start + loads:

stored in motion, in the body (its walls and the ghost penalty of its cuts included), in height and
in the springs of the contact; taken by stiffness and mass damping and by viscoelastic branches, by
contact (friction, and what its linearised springs lose), and by the time integrator; given by loads
and walls that move.
`scheme` is what is left over. The exact motion has none; second-order schemes err to and fro, those
with numerical damping take some, and a scheme that gives energy is no longer stable.
"""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pliant.dynamics.model import Model, State

WORTH_A_WORD = 0.03
"""Share of the energy exchanged that a run may gain without a word. Undamped silicone blocks in
steps that suit them gain less than 1e-4, ordinary landings (tests/soak_scenes.py) up to 1 %."""

LARGEST_GAIN = 0.2
"""Share of the energy exchanged so far that may appear from nowhere before a run is stopped. A
stable run errs by some per cent at most, an unstable one passes this mark and doubles soon."""


@dataclass(frozen=True)
class Energies:
    """Energies [J], numbers or arrays over the frames; 2D: per metre of thickness.

    kinetic, elastic, gravity (from the rest shape on), contact: at each frame; damping, rubbing,
    scheme: taken since the start; loads: given since the start.
    """

    kinetic: np.ndarray | float = 0.0
    elastic: np.ndarray | float = 0.0
    gravity: np.ndarray | float = 0.0
    contact: np.ndarray | float = 0.0
    damping: np.ndarray | float = 0.0
    rubbing: np.ndarray | float = 0.0
    scheme: np.ndarray | float = 0.0
    loads: np.ndarray | float = 0.0

    @property
    def total(self) -> np.ndarray | float:
        """Kinetic and stored energy."""
        return self.kinetic + self.elastic + self.gravity + self.contact

    @property
    def dissipated(self) -> np.ndarray | float:
        """Taken by damping and by contact."""
        return self.damping + self.rubbing

    @property
    def appeared(self) -> Any:
        """Energy that came from nowhere since the start; negative: that the scheme has taken.

        Contact and scheme together: where an impact is quicker than a step, what one of them loses
        the other seems to give.
        """
        return -(self.scheme + self.rubbing)

    def warnings(self) -> list[str]:
        """A sentence where a run gained more than its scheme's error explains, and was not stopped.

        Of what was exchanged in the whole run: its first steps exchange next to nothing.
        """
        moved = self.kinetic + np.abs(self.elastic) + np.abs(self.gravity) + self.contact
        gained = float(np.max(self.appeared, initial=0.0))
        share = gained / max(float(np.max(moved + self.dissipated, initial=0.0)), 1e-300)
        if not share > WORTH_A_WORD:
            return []
        return [
            f"{share:.1%} of the energy exchanged has appeared from nowhere: use a shorter time "
            "step, or an integrator that damps high frequencies (GeneralisedAlpha)."
        ]

    def row(self) -> np.ndarray:
        """The numbers in the order of the fields, the last axis."""
        return np.stack([np.asarray(getattr(self, name), float) for name in NAMES], axis=-1)

    @classmethod
    def of(cls, rows: np.ndarray) -> "Energies":
        """The inverse of `row`."""
        return cls(*(rows[..., j] for j in range(len(NAMES))))


NAMES = tuple(f.name for f in fields(Energies))


class EnergyBook:
    """Keeps the account of a run: `open` at its start, `add` after every step."""

    def __init__(self, model: "Model"):
        self.model = model
        self.now = Energies()
        self.exchanged = 0.0

    def open(self, state: "State", carried: Energies | None = None) -> Energies:
        """Begin at a state; carried: the account of the run that led to it."""
        self.now = carried or self.model.stored(state)
        e = self.now
        moved = float(abs(e.kinetic) + abs(e.elastic) + abs(e.gravity) + abs(e.contact))
        self.exchanged = max(moved, self.model.least_exchange())
        return self.now

    def add(self, before: "State", after: "State") -> Energies:
        """The account after the step from one state to the next."""
        last, now = self.now, self.model.stored(after)
        damping, touched, loads = self.model.work(before, after)
        now = replace(
            now,
            damping=last.damping + damping,
            rubbing=last.rubbing - touched - (now.contact - last.contact),
            loads=last.loads + loads,
        )
        # from the last account alone: one that is taken up again goes on with the same bits
        held = last.total + last.dissipated - last.loads
        scheme = last.scheme + (held - (now.total + now.dissipated - now.loads))
        self.now = replace(now, scheme=scheme)
        moved = now.kinetic + abs(now.elastic) + abs(now.gravity) + now.contact + now.dissipated
        self.exchanged = max(self.exchanged, float(moved))
        return self.now

    @property
    def gain(self) -> float:
        """Energy that appeared from nowhere, as a share of what was exchanged so far."""
        return self.now.appeared / max(self.exchanged, 1e-300)

    def complaint(self, t: float) -> str | None:
        """What to say when energy appears from nowhere; None as long as it does not."""
        finite = np.isfinite(self.now.row()).all()
        if finite and self.gain <= LARGEST_GAIN:
            return None
        appeared = f"{self.now.appeared:.3g} J" if finite else "an infinite energy"
        return (
            f"Energy appears from nowhere: at t = {t:.4g} s the body holds {appeared} more than "
            f"its loads gave it ({self.exchanged:.3g} J exchanged so far), so "
            f"{self.model.remedy()}"
        )
