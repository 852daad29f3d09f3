"""The stress of a scene's body: of its law where it has one, else of its linear elasticity."""

import numpy as np

from pliant.dynamics.law_system import scene_law
from pliant.dynamics.scene import Scene
from pliant.fem.law_stress import LawStress
from pliant.fem.stress import Stresses, StressField


class SceneStress:
    """Stresses in the middle of each cell of a scene's body; see fem.stress and fem.law_stress."""

    def __init__(self, scene: Scene):
        self._law: LawStress | None = None
        if scene.law is not None:
            self._law = LawStress(scene.body, scene_law(scene), dilatation=scene.dilatation)
        else:
            self._field = StressField(scene.body, model=scene.model)
            self._moduli = scene.material.lame(len(scene.body.cells))

    def at(self, u: np.ndarray) -> Stresses:
        """Stresses for a displacement u (nodes, dim) [m]."""
        if self._law is not None:
            return self._law.at(u)
        lam, mu = self._moduli
        return self._field.at(u, lam, mu)
