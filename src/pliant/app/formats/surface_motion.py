"""A surface over time, ready to be written: what all mesh formats need of a trajectory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.trajectory import Trajectory
from pliant.fem.bodies.render_mesh import RenderMesh


@dataclass(frozen=True)
class SurfaceMotion:
    """Triangles (t, 3) carried by nodes that move.

    times: (frames,) [s]; nodes: (frames, nodes, 3) positions [m]; steps: (frames,) labels.
    """

    mesh: RenderMesh
    times: np.ndarray
    nodes: np.ndarray
    steps: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def positions(self, frame: int) -> np.ndarray:
        """Vertices (vertices, 3) of a frame."""
        return self.mesh.positions(self.nodes[frame])

    def frames(self) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """(time, positions, normals) one after the other."""
        for k, time in enumerate(self.times):
            positions = self.positions(k)
            yield float(time), positions, self.mesh.normals(positions)


def surface_motion(
    run: Trajectory, *, mesh: RenderMesh | None = None, every: int = 1
) -> SurfaceMotion:
    """Every K-th frame and the last of a run, of a render mesh or the body's own surface."""
    if every < 1:
        raise BadInput(f"--every must be at least 1, not {every}.")
    body = run.scene.body
    if body.dim != 3:
        raise BadInput("A 2D body has no triangles to export: use --format vtu, gif or mp4.")
    if mesh is None:
        mesh = RenderMesh(body.surface.points, body.surface.facets)
    chosen = np.unique([*range(0, len(run.times), every), len(run.times) - 1])
    return SurfaceMotion(
        mesh, np.asarray(run.times, float)[chosen], body.nodes + run.displacements[chosen], chosen
    )
