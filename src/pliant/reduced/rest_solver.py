"""Solves about the rest shape of the full body: stiffness of cells and walls, for making bases.

Small bodies are factorised; large ones take conjugate gradients with the hierarchy of grids of
`dynamics`, to a tolerance that a basis needs and no more.
"""

from dataclasses import replace

import numpy as np
import warp as wp
from scipy.sparse.linalg import splu

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.constitution import DEFAULT
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.integrators import ImplicitEuler
from pliant.dynamics.scene import Scene
from pliant.linalg.multigrid import Multigrid
from pliant.linalg.pcg import Tolerance

DIRECT_NODES = {2: 20_000, 3: 1_500}
"""Nodes up to which a stiffness is factorised (2D and 3D)."""

ENOUGH = 1e-6
"""Relative residual of a vector that becomes one of a basis."""


def full_scene(scene: Scene) -> Scene:
    """The scene of the full body under its law; what is corotated is so at every point.

    Walls are then held by penalties alone, as those of the reduced body are.
    """
    return replace(
        scene, model=DEFAULT, law=scene.law or "corotated", start="rest", numbers=None,
        preconditioner="multigrid", source=None,
    )  # fmt: skip


class RestSolver:
    """K^-1 about the rest; forces and displacements are (nodes, 3)."""

    def __init__(self, scene: Scene, *, shift: float = 0.0):
        """shift [1/s^2]: K + shift M, for bodies that nothing holds."""
        own = full_scene(scene)
        self.model = ImplicitModel(replace(own, integrator=ImplicitEuler(own.dt)))
        model = self.model
        model.assemble_rest(mass_factor=shift)
        self._free = np.flatnonzero(model.boundary.free.reshape(-1))
        self._factor = None
        large = model.node_count > DIRECT_NODES[scene.dim]
        if large and isinstance(model.preconditioner, Multigrid):
            model.preconditioner.update(model.matrix, fresh=True)
            return
        K = model.matrix.to_scipy().tocsr()[self._free][:, self._free].tocsc()
        self._factor = splu(K, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def solve(self, force: np.ndarray) -> np.ndarray:
        """u with K u = force on the free components, zero elsewhere."""
        if self._factor is not None:
            out = np.zeros(force.size)
            out[self._free] = self._factor.solve(force.reshape(-1)[self._free])
            return out.reshape(force.shape)
        model, x = self.model, zeros(len(force), wp.vec3d)
        b = to_device(force, wp.vec3d)
        found = model.solver.solve(b, x, Tolerance(relative=ENOUGH))
        if not found.outcome.ok and found.residual > 1e3 * found.target:
            raise SolverFailure(f"A solve for the reduced basis failed: {found.outcome.value}.")
        return x.numpy().copy()
