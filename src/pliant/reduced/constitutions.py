"""Reduced bodies as a scene knows them: words, numbers with units, what steps it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pliant.dynamics.constitution import (
    DEFAULT,
    Constitution,
    Slopes,
    Stress,
    constitution_of,
    register_model,
)
from pliant.dynamics.model_numbers import number

if TYPE_CHECKING:
    from pliant.dynamics.model import Model
    from pliant.dynamics.terms.elastic import Elastic
    from pliant.dynamics.trajectory import Trajectory
    from pliant.fem.laws.law import Law


class _Reduced(Constitution):
    """What they have in common: material, law and stresses are those of the full body."""

    rests_as = DEFAULT
    energetic = takes_law = True
    branched = finite_elements = False

    @cached_property
    def full(self) -> Constitution:
        """Of the same scene with all its numbers."""
        return constitution_of(replace(self.scene, model=DEFAULT, start="rest"))

    @property
    def law(self) -> "Law | None":
        """See Constitution."""
        return self.full.law

    @property
    def follows_moduli(self) -> bool:
        """See Constitution."""
        return self.full.follows_moduli

    def moduli(self):
        """See Constitution."""
        return self.full.moduli()

    def law_by_moduli(self) -> Slopes | None:
        """See Constitution."""
        return self.full.law_by_moduli()

    def parameters(self) -> dict[str, str]:
        """See Constitution."""
        return self.full.parameters()

    def elastic(self) -> "Elastic":
        """Of the full body."""
        return self.full.elastic()

    def stress(self) -> Stress:
        """See Constitution."""
        return self.full.stress()

    def entries(self):
        """See Constitution."""
        return {**self.full.entries(), **super().entries()}

    def make_model(self) -> "Model":
        """See Constitution."""
        from pliant.reduced.prepare import prepared
        from pliant.reduced.reduced_model import ReducedModel

        return ReducedModel(self.scene, prepared(self.scene))

    def run_record(self, run: "Trajectory") -> dict[str, Any]:
        """The reduction's report, and how far the run is from the full body's."""
        from pliant.reduced.error_estimate import estimated_error
        from pliant.reduced.prepare import prepared

        reduction = prepared(self.scene)
        own: dict[str, Any] = {"numbers": reduction.span.size, **reduction.report}
        if run.steps < 3:
            return {"reduction": own, "told": ""}
        found = estimated_error(run)
        return {
            "reduction": own,
            "error_estimate": {
                "relative": found.relative, "frames": found.frames.tolist(),
                "errors": found.errors.tolist(), "displacements": found.sizes.tolist(),
            },
            "told": found.told(),
        }  # fmt: skip


@dataclass(frozen=True)
class ModalNumbers:
    """See reduced.modal_basis."""

    modes: int = number(
        10, low=1, high=200, whole=True, slider=True, words="lowest modes in the basis"
    )
    order: int = number(
        1, high=2, whole=True, words="modal derivatives: 0 none, 1 of pairs, 2 of triples as well"
    )
    snapshots: int = number(
        0, high=10_000, whole=True, words="steps of a full run whose shapes are the basis instead"
    )
    most: int = number(0, high=600, whole=True, words="numbers kept of the basis; 0: all")
    cubature: float = number(
        0.02, high=0.5, words="error of the trained points, as a share of the forces; 0: all points"
    )


@register_model
class Modal(_Reduced):
    """Modes and their derivatives as a basis."""

    tag = "modal"
    words = "modes and modal derivatives: the fewest numbers, for motions about the rest"
    numbers = ModalNumbers


@dataclass(frozen=True)
class DomainNumbers:
    """See reduced.domains."""

    domains: int = number(
        5, low=1, high=64, whole=True, slider=True, words="overlapping domains of 30 numbers each"
    )
    weights: str = number(
        "elastic", choices=("elastic", "harmonic"), words="how a domain's influence fades"
    )
    cubature: float = number(
        0.02, high=0.5, words="error of the trained points, as a share of the forces; 0: all points"
    )


@register_model
class Domains(_Reduced):
    """Overlapping quadratic domains."""

    tag = "reduced"
    words = "overlapping quadratic domains: large deformations in real time"
    numbers = DomainNumbers
