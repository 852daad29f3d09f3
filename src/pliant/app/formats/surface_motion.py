"""A surface over time, ready to be written: what all mesh formats need of a trajectory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.trajectory import Trajectory
from pliant.fem.bodies.render_mesh import RenderMesh, own_surface, skin_of
from pliant.geometry.mesh_look import MeshLook, look_of


@dataclass(frozen=True)
class SurfaceMotion:
    """Triangles (t, 3) carried by nodes that move.

    look: of the file that the mesh comes from; its vertices and triangles are then those written.
    colours: (vertices, 3) in 0 .. 1 (sRGB) where the vertices are painted.
    times: (frames,) [s]; nodes: (frames, nodes, 3) positions [m]; steps: (frames,) labels.
    """

    mesh: RenderMesh
    times: np.ndarray
    nodes: np.ndarray
    steps: np.ndarray
    look: MeshLook | None = None
    colours: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.times)

    def positions(self, frame: int) -> np.ndarray:
        """Vertices (vertices, 3) of a frame."""
        return self.mesh.positions(self.nodes[frame])

    @property
    def triangles(self) -> np.ndarray:
        """Of the vertices that `frames` has."""
        return self.mesh.triangles if self.look is None else self.look.triangles

    @property
    def vertex_count(self) -> int:
        """How many vertices `frames` has."""
        return len(self.mesh.points) if self.look is None else len(self.look.vertex)

    def frames(self) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """(time, positions, normals) one after the other; along the seams of a texture the same
        vertex comes more than once, with the same normal.
        """
        for k, time in enumerate(self.times):
            positions = self.positions(k)
            normals = self.mesh.normals(positions)
            if self.look is not None:
                positions, normals = positions[self.look.vertex], normals[self.look.vertex]
            yield float(time), positions, normals


def surface_motion(
    run: Trajectory, *, mesh: RenderMesh | None = None, own: bool = False, every: int = 1
) -> SurfaceMotion:
    """Every K-th frame and the last of a run.

    Of a render mesh, by default the mesh that the body was made from, or, where there is none or
    `own` is asked for, of the body's own surface.
    """
    if every < 1:
        raise BadInput(f"--every must be at least 1, not {every}.")
    body = run.scene.body
    if body.dim != 3:
        raise BadInput("A 2D body has no triangles to export: use --format vtu, gif or mp4.")
    if mesh is None:
        mesh = (None if own else skin_of(body)) or own_surface(body)
    look = None if mesh.shape is None else look_of(mesh.shape)
    chosen = np.unique([*range(0, len(run.times), every), len(run.times) - 1])
    return SurfaceMotion(
        mesh,
        np.asarray(run.times, float)[chosen],
        body.nodes + run.displacements[chosen],
        chosen,
        look,
    )
