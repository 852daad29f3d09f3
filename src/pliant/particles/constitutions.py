"""The models of particles as a scene knows them: words, numbers with units, what steps it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pliant.dynamics.constitution import DEFAULT, Corotated, Stress, register_model
from pliant.dynamics.model_numbers import number

if TYPE_CHECKING:
    from pliant.dynamics.model import Model
    from pliant.fem.forces.elasticity import Elasticity
    from pliant.fem.laws.law import Law


class _Particles(Corotated):
    """What they have in common: at rest, in modes and in stresses the body is an elastic one."""

    rests_as = DEFAULT
    branched = False

    @property
    def law(self) -> "Law":
        """The energy per volume of finite elements with the same moduli."""
        return self._named(DEFAULT)

    def _rest(self) -> "Elasticity":
        from pliant.fem.forces.elasticity import Elasticity

        return Elasticity(self.scene.body, model=DEFAULT, dilatation=self.scene.dilatation)

    def stress(self) -> Stress:
        """See Constitution."""
        return replace(self.scene, model=DEFAULT).stress()


@dataclass(frozen=True)
class PositionBasedNumbers:
    """substeps: of a step, 0 for as many as the material asks for; iterations: sweeps in each."""

    substeps: int = number(0, high=100_000, whole=True, words="parts of a step; 0: by itself")
    iterations: int = number(1, low=1, high=10_000, whole=True, words="sweeps in a substep")


@register_model
class PositionBased(_Particles):
    """Constraints instead of forces; see particles.position_based."""

    tag = "position-based"
    words = "compliant constraints swept in short substeps (XPBD): never explodes"
    numbers = PositionBasedNumbers

    def make_model(self) -> "Model":
        """See Constitution."""
        from pliant.particles.position_based import PositionBasedModel

        return PositionBasedModel(self.scene)
