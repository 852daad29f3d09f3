"""Contact of a reduced body: the scene's contact forces on its surface points, through the span.

The contact of dynamics.contact is that of points carried by nodes; here each point is its own node,
so that nothing is evaluated inside the body:

    f = S^T c(S q', S q'', ...),   S from q to the surface points.

At a point the force depends on that point alone: its derivatives are 3 x 3 blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.core.vectors import in_space
from pliant.dynamics.contact import LIGHT, Contact
from pliant.dynamics.contact_derivatives import add_contact_adjoint, add_contact_tangent
from pliant.dynamics.own_weight import own_weight
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.embedding import Embedding, Surface
from pliant.reduced.spans import Span

FIELDS = ("u", "v", "at", "next_u", "next_v")
"""What the force of a step depends on, in the order of dynamics.contact_derivatives."""

MOVED = {"u": (0,), "v": (1,), "next_u": (2, 3), "next_v": (4,)}
"""The fields that a change of each moves: distances are taken at the step's end."""


@dataclass(frozen=True)
class PointBody:
    """The surface points as a body: what Contact asks of one."""

    nodes: np.ndarray
    surface: Surface
    spacing: float


def points_of(scene: Scene) -> Any:
    """The surface points of a scene's body, each its own node."""
    body = scene.body
    count = len(body.surface.points)
    own = Embedding(np.arange(count, dtype=np.int32)[:, None], np.ones((count, 1)), count)
    surface = Surface(own, body.surface.facets, body.surface.facet_cell)
    return PointBody(body.surface.positions(body.nodes), surface, body.spacing)


class SurfaceContact:
    """Forces in q; places and velocities are given as vectors q of the span's numbers."""

    def __init__(self, scene: Scene, span: Span):
        """span: from q to the nodes of the body."""
        burden = own_weight(scene) - LIGHT * float(np.mean(scene.cell_material.youngs_modulus))
        self.contact = Contact(
            points_of(scene), scene.obstacles, scene.contact, weight=own_weight(scene),
            burden=max(0.0, burden),
        )  # fmt: skip
        self.span = span.carried(scene.body.surface.points.matrix)
        self.dim, self.count = span.dim, self.contact.count

    def set_numbers(self, scene: Scene, modulus: float) -> None:
        """Another scene's obstacles and law; modulus: Young's."""
        self.contact.set_obstacles(scene.obstacles, scene.contact)
        self.contact.set_stiffness(modulus)

    def field(self, q: np.ndarray) -> wp.array:
        """A vector in q as a field of the points."""
        return to_device(in_space(self.span.apply(q)), wp.vec3d)

    def fields(self, u, v, next_u, next_v) -> tuple[wp.array, ...]:
        """The fields of a step, FIELDS."""
        ahead = self.field(next_u)
        return self.field(u), self.field(v), ahead, ahead, self.field(next_v)

    def force(self, fields: Sequence[wp.array], force: tuple[float, float], per_x) -> np.ndarray:
        """Of a step's fields; leaves the blocks for `matrix`. per_x: change of u' and v' with x."""
        out = zeros(self.count, wp.vec3d)
        u, v, at, next_u, next_v = fields
        self.contact.add_forces(
            u, v, at, (next_u, next_v), f_new=force[0], f_old=force[1], per_x=per_x, out=out
        )
        return self.span.pull(out.numpy()[:, : self.dim])

    def matrix(self) -> np.ndarray:
        """- d force / dx without what friction gains, as of the last `force`: symmetric."""
        return self._gram(self.contact.block.numpy())

    def _gram(self, blocks: np.ndarray) -> np.ndarray:
        d = self.dim
        touched = np.flatnonzero(np.abs(blocks).max(axis=(1, 2)) > 0.0)
        if len(touched) == 0:
            return np.zeros((self.span.size, self.span.size))
        B = self.span.columns(touched)
        C = np.matmul(blocks[touched, :d, :d], B)
        return B.reshape(-1, self.span.size).T @ C.reshape(-1, self.span.size)

    def energy(self, q: np.ndarray) -> float:
        """Of the springs [J]."""
        return self.contact.energy(self.field(q))

    # derivatives ----------------------------------------------------------------------------------

    def jacobians(
        self, fields: Sequence[wp.array], force: tuple[float, float]
    ) -> dict[str, np.ndarray]:
        """d force / d field, (size, size), by each of u, v, next_u (the place included), next_v."""
        found = {}
        for name, moved in MOVED.items():
            blocks = np.zeros((self.count, 3, 3))
            for k in range(self.dim):
                unit = np.zeros((self.count, 3))
                unit[:, k] = 1.0
                change = [zeros(self.count, wp.vec3d) for _ in FIELDS]
                for i in moved:
                    change[i] = to_device(unit, wp.vec3d)
                blocks[:, :, k] = self._tangent(fields, change, force).numpy()
            found[name] = self._gram(blocks)
        return found

    def by_parameter(
        self,
        fields: Sequence[wp.array],
        force: tuple[float, float],
        *,
        normal: np.ndarray | None = None,
        offset: np.ndarray | None = None,
        stiffness: float = 0.0,
    ) -> np.ndarray:
        """Change of the force by obstacles and stiffness."""
        change = [zeros(self.count, wp.vec3d) for _ in FIELDS]
        out = self._tangent(
            fields, change, force, normal=normal, offset=offset, stiffness=stiffness
        )
        return self.span.pull(out.numpy()[:, : self.dim])

    def parameters_pull(
        self, fields: Sequence[wp.array], force: tuple[float, float], y: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Transpose of `by_parameter`, of y . force."""
        given = self.field(y)
        bars = tuple(zeros(self.count, wp.vec3d) for _ in FIELDS)
        found = add_contact_adjoint(
            self.contact, tuple(fields), given, f_new=force[0], f_old=force[1], implicit=True,
            out=bars,
        )  # fmt: skip
        return {
            "normal": found.normal, "offset": np.asarray(found.offset),
            "contact_stiffness": np.asarray(found.stiffness),
        }  # fmt: skip

    def _tangent(
        self, fields, change, force, *, normal=None, offset=None, stiffness=0.0
    ) -> wp.array:
        count = len(self.contact.obstacles)
        out = zeros(self.count, wp.vec3d)
        add_contact_tangent(
            self.contact, tuple(fields), tuple(change), f_new=force[0], f_old=force[1],
            implicit=True, normal=np.zeros((count, 3)) if normal is None else normal,
            offset=np.zeros(count) if offset is None else offset, stiffness=stiffness, out=out,
        )  # fmt: skip
        return out
