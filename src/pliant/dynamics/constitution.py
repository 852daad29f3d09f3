"""What a body is made of and how its steps are solved: one record, found by its tag.

A scene says it by `model`, or by `law`, which stands for a model of its own. Whatever depends on it
asks the record: moduli, the elastic term, stresses, the numbers that may be unknown and their
units, the entries of a scene file and the words of menus. Another way to resist is one more class,
registered here (`register_model`), and no change elsewhere; layers above register theirs when
`models` is first asked (core.later).
"""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from pliant.complexstep.derivatives import STEP
from pliant.core import later
from pliant.core.errors import BadInput
from pliant.dynamics.model_numbers import plain
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Law
from pliant.fem.laws.tables import describe_law

if TYPE_CHECKING:
    from pliant.dynamics.model import Block, Model
    from pliant.dynamics.scene import Scene
    from pliant.dynamics.terms.elastic import Elastic
    from pliant.dynamics.trajectory import Trajectory
    from pliant.fem.forces.elasticity import Elasticity
    from pliant.fem.forces.stress import Stresses

DEFAULT = "corotated"

Slopes = tuple[np.ndarray, np.ndarray]


class Stress(Protocol):
    """Stresses in the middle of each cell."""

    def at(self, u: np.ndarray) -> "Stresses":
        """For a displacement u (nodes, dim) [m]."""
        ...


class Constitution:
    """The record of one scene.

    energetic: the forces are an energy's, so a step is Newton's method; else one linear solve.
    exact_walls: Nitsche's terms are known for it. compact: its matrix may be stored by half.
    rests_as: the tag of what a body of this kind rests as. words: for menus.
    branched: viscoelastic branches are known for it.
    finite_elements: whether its steps are those of the body's cells, which others are compared to.
    numbers: the class of its own numbers (dynamics.model_numbers), None where it has none.
    takes_law: whether a scene may give it a law beside its tag.
    """

    tag: ClassVar[str]
    words: ClassVar[str]
    energetic: ClassVar[bool]
    exact_walls: ClassVar[bool] = True
    compact: ClassVar[bool] = True
    rests_as: ClassVar[str]
    branched: ClassVar[bool] = True
    numbers: ClassVar[type | None] = None
    finite_elements: ClassVar[bool] = True
    takes_law: ClassVar[bool] = False

    def __init__(self, scene: "Scene"):
        self.scene = scene

    @property
    def law(self) -> Law | None:
        """The energy per volume, with its numbers."""
        return None

    @property
    def follows_moduli(self) -> bool:
        """Whether Young's modulus and Poisson's ratio of the material mean anything here."""
        return True

    def moduli(self) -> tuple[np.ndarray, np.ndarray]:
        """Lame coefficients of the cells at small strain, (cells,) [Pa]."""
        return self.scene.cell_material.lame(len(self.scene.body.cells))

    def law_by_moduli(self) -> Slopes | None:
        """d p / d lambda and d p / d mu of the law, (cells, parameters), where it follows them."""
        return None

    def parameters(self) -> dict[str, str]:
        """Units of the law's own numbers, by name."""
        return {}

    def make_model(self) -> "Model":
        """What steps the scene."""
        from pliant.dynamics.implicit import ImplicitModel  # which is made from scenes

        return ImplicitModel(self.scene)

    def elastic(self) -> "Elastic":
        """The elastic term of an implicit model's step."""
        raise TypeError(self.tag)

    def stress(self) -> Stress:
        """Of the body's cells."""
        return _LinearStress(self.scene)

    def entries(self) -> dict[str, Any]:
        """What a scene file says of it, beside the material."""
        own = {} if self.scene.numbers is None else plain(self.scene.numbers)
        return {"model": self.tag, **({"numbers": own} if own else {})}

    def blocks(self) -> dict[str, "Block"]:
        """What may be unknown of its own numbers, by name."""
        return {}

    def cautions(self) -> list[str]:
        """What a fit with this model cannot tell, a sentence each."""
        return []

    def run_warnings(self) -> list[str]:
        """What to know of this model before trusting a run, a sentence each."""
        return []

    def run_record(self, run: "Trajectory") -> dict[str, Any]:
        """What this model's record of a run has beyond what all have, with a sentence `told`."""
        return {}

    def _rest(self) -> "Elasticity":
        """The linear operator about the rest shape."""
        from pliant.fem.forces.elasticity import Elasticity

        scene = self.scene
        return Elasticity(scene.body, model=scene.model, dilatation=scene.dilatation)


class _Stiffness(Constitution):
    """A stiffness that does not change within a step: no energy behind turning frames."""

    energetic = False

    def elastic(self) -> "Elastic":
        from pliant.dynamics.terms.elastic import FrozenTerm

        return FrozenTerm(self._rest())


class Linear(_Stiffness):
    """Small rotations only."""

    tag = rests_as = "linear"
    words = "small rotations only: the cheapest step"


class Frozen(_Stiffness):
    """Rotations of the predicted displacement: the step of seed 000."""

    tag, rests_as = "corotated-frozen", DEFAULT
    words = "frames of the predicted displacement, for comparison: may gain energy from nowhere"
    branched = False


class FrozenColumns(_Stiffness):
    """The same with rotations by Gram and Schmidt."""

    tag, rests_as = "corotated-qr", DEFAULT
    words = "frozen frames by orthogonalised columns, for comparison: may gain energy from nowhere"
    branched = False


class _Energy(Constitution):
    energetic = True

    def law_by_moduli(self) -> Slopes | None:
        """A direction in lambda and mu (of `youngs_modulus`, say) is one in the law's numbers."""
        law = self.law
        assert law is not None
        starts: Any = law.energy.starts
        assert starts is not None
        cells = len(self.scene.body.cells)
        lam, mu = self.scene.cell_material.lame(cells)
        out = []
        for d_lam, d_mu in ((1j * STEP, 0.0), (0.0, 1j * STEP)):
            l, m = lam + d_lam, mu + d_mu
            E, nu = m * (3.0 * l + 2.0 * m) / (l + m), l / (2.0 * (l + m))
            values = starts(E, nu)
            columns = [np.broadcast_to(np.imag(values[n]) / STEP, (cells,)) for n in law.values]
            out.append(np.stack(columns, axis=1))
        return out[0], out[1]

    def moduli(self) -> tuple[np.ndarray, np.ndarray]:
        law, cells = self.law, len(self.scene.body.cells)
        assert law is not None
        lam, mu = (np.broadcast_to(np.asarray(x, float), (cells,)).copy() for x in law.lame())
        if (mu <= 0.0).any():
            raise BadInput(f"{law}: the shear modulus at small strain must be positive.")
        return lam, mu

    def _named(self, name: str) -> Law:
        m = self.scene.cell_material
        return find_law(name).from_moduli(m.youngs_modulus, m.poisson_ratio)


class Corotated(_Energy):
    """The default: an energy of the cells' stretches."""

    tag = rests_as = DEFAULT
    words = "an energy of the cells' stretches: the default"

    @property
    def law(self) -> Law:
        return self._named(self.tag)

    def elastic(self) -> "Elastic":
        from pliant.dynamics.terms.elastic import EnergyTerm
        from pliant.fem.forces.corotation import Corotation

        rest = self._rest()
        return EnergyTerm(Corotation(self.scene.body, self.law, rest), rest)


class Hyperelastic(_Energy):
    """A material law, by name or with numbers of its own."""

    tag = rests_as = "law"
    words = "a material law"
    exact_walls = compact = False

    @property
    def law(self) -> Law:
        law = self.scene.law
        assert law is not None
        return law if isinstance(law, Law) else self._named(law)

    @property
    def follows_moduli(self) -> bool:
        return not isinstance(self.scene.law, Law)

    def moduli(self) -> tuple[np.ndarray, np.ndarray]:
        """Walls and contact need a positive scale even where a law has no bulk modulus at rest."""
        lam, mu = super().moduli()
        return np.maximum(lam, 0.0), mu

    def law_by_moduli(self) -> Slopes | None:
        return super().law_by_moduli() if self.follows_moduli else None

    def parameters(self) -> dict[str, str]:
        law = self.law
        return {name: law.energy.units.get(name, "") for name in law.values}

    def elastic(self) -> "Elastic":
        from pliant.dynamics.terms.elastic import EnergyTerm
        from pliant.fem.forces.hyperelastic import Hyperelasticity

        scene = self.scene
        operator = Hyperelasticity(scene.body, self.law, dilatation=scene.dilatation)
        return EnergyTerm(operator, self._rest())

    def stress(self) -> Stress:
        from pliant.fem.forces.law_stress import LawStress

        return LawStress(self.scene.body, self.law, dilatation=self.scene.dilatation)

    def entries(self) -> dict[str, Any]:
        assert self.scene.law is not None
        return {"model": DEFAULT, "law": describe_law(self.scene.law)}


MODELS: dict[str, type[Constitution]] = {
    kind.tag: kind for kind in (Corotated, Linear, Frozen, FrozenColumns)
}
"""What `model` may be, by tag: one more entry is one more model, in files, menus and messages; a
law, which has a key of its own, stands for `Hyperelastic`. Read it through `models`."""

K = TypeVar("K", bound=type[Constitution])


def register_model(kind: K) -> K:
    """Decorator: `model = tag` is this from now on."""
    MODELS[kind.tag] = kind
    return kind


def models() -> dict[str, type[Constitution]]:
    """All models by tag, those of the layers above included."""
    later.load("models")
    return MODELS


def constitution_of(scene: "Scene") -> Constitution:
    """The scene's record; raises BadInput where its fields name none, or contradict each other."""
    known = MODELS if scene.model in MODELS else models()
    if scene.model not in known:
        raise BadInput(f"model must be one of {', '.join(known)}, not '{scene.model}'.")
    if scene.law is None or known[scene.model].takes_law:
        return known[scene.model](scene)
    if scene.model != DEFAULT:
        name = scene.law if isinstance(scene.law, str) else scene.law.name
        raise BadInput(
            f"model = '{scene.model}' and law = '{name}' contradict each other: a law is a model "
            "of its own, so leave model out."
        )
    return Hyperelastic(scene)


class _LinearStress:
    """Of Hooke's law in the cells' frames."""

    def __init__(self, scene: "Scene"):
        from pliant.fem.forces.stress import StressField

        self._field = StressField(scene.body, model=scene.model)
        self._moduli = scene.cell_material.lame(len(scene.body.cells))

    def at(self, u: np.ndarray) -> "Stresses":
        return self._field.at(u, *self._moduli)
