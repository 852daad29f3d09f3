"""The models of particles as a scene knows them: words, numbers with units, what steps it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.constitution import DEFAULT, Corotated, Stress, register_model
from pliant.dynamics.model_numbers import number

if TYPE_CHECKING:
    from pliant.dynamics.model import Block, Model
    from pliant.dynamics.scene import Scene
    from pliant.fem.forces.elasticity import Elasticity
    from pliant.fem.laws.law import Law


class _Particles(Corotated):
    """What they have in common: at rest, in modes and in stresses the body is an elastic one."""

    rests_as = DEFAULT
    branched = finite_elements = False

    @property
    def law(self) -> "Law":
        """The energy per volume of finite elements with the same moduli."""
        return self._named(DEFAULT)

    def _rest(self) -> "Elasticity":
        from pliant.fem.forces.elasticity import Elasticity

        return Elasticity(self.scene.body, model=DEFAULT, dilatation=self.scene.dilatation)

    def blocks(self) -> dict[str, "Block"]:
        """See Constitution."""
        from pliant.particles.number_blocks import number_blocks

        assert self.numbers is not None
        return number_blocks(self.numbers)

    def cautions(self) -> list[str]:
        """See Constitution."""
        return [
            f"model = '{self.tag}' has no derivatives of its own: those of this fit are "
            "differences of steps, and its numbers are this model's, not finite elements'."
        ]

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


@dataclass(frozen=True)
class ShapeMatchingNumbers:
    """See particles.shape_matching."""

    alpha: float = number(
        0.0, high=1.0, chart="positive", slider=True,
        words="share of the way to the goal in 1/60 s; 1: rigid; 0: from Young's modulus",
    )  # fmt: skip
    beta: float = number(
        0.0, high=0.99, chart="positive", slider=True, words="share of the fitted shape in a goal"
    )
    goals: str = number("linear", choices=("linear", "quadratic"), words="what beta is a share of")
    clusters: int = number(
        0, high=1_000_000, whole=True, words="overlapping groups of nodes; 0: one around each node"
    )
    substeps: int = number(0, high=100_000, whole=True, words="parts of a step; 0: by itself")
    iterations: int = number(1, low=1, high=10_000, whole=True, words="times that goals are found")
    yield_strain: float = number(0.0, high=10.0, words="strain from which on it flows; 0: never")
    creep: float = number(10.0, unit="1/s", high=1e6, words="how quickly it flows")
    limit: float = number(0.5, high=10.0, words="largest plastic strain")


@register_model
class ShapeMatching(_Particles):
    """Clusters pulled to their rest shape; see particles.shape_matching."""

    tag = "shape-matching"
    words = "clusters pulled to their rest shape: cheap, unbreakable, not a material"
    numbers = ShapeMatchingNumbers

    def __init__(self, scene: "Scene"):
        super().__init__(scene)
        own = scene.numbers
        if isinstance(own, ShapeMatchingNumbers):
            if own.yield_strain > 0.0 and own.goals == "quadratic":
                raise BadInput(
                    "numbers.yield_strain: quadratic goals do not flow; use goals = 'linear'."
                )

    def make_model(self) -> "Model":
        """See Constitution."""
        from pliant.particles.shape_matching import ShapeMatchingModel

        return ShapeMatchingModel(self.scene)


@dataclass(frozen=True)
class MassSpringNumbers:
    """See particles.mass_spring."""

    scheme: str = number(
        "runge-kutta-4",
        choices=("explicit-euler", "runge-kutta-2", "runge-kutta-4", "implicit-euler",
                 "implicit-euler-linear"),
        words="how springs are advanced; the scene's integrator gives the step alone",
    )  # fmt: skip
    substeps: int = number(0, high=100_000, whole=True, words="parts of a step; 0: by itself")


@register_model
class MassSpring(_Particles):
    """Springs between the nodes; see particles.mass_spring."""

    tag = "mass-spring"
    words = "springs along edges and diagonals: Poisson's ratio 1/4 whatever is asked"
    numbers = MassSpringNumbers

    def run_warnings(self) -> list[str]:
        """See Constitution."""
        asked = self.scene.cell_material.poisson_ratio
        if np.allclose(asked, 0.25, atol=0.01):
            return []
        return [
            "Springs have Poisson's ratio 1/4 (1/3 in the plane), whatever the material says: only "
            "Young's modulus was taken from it."
        ]

    def make_model(self) -> "Model":
        """See Constitution."""
        from pliant.particles.mass_spring import MassSpringModel

        return MassSpringModel(self.scene)
