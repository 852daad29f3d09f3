"""Trajectories as files that other programs open: VTU frames with a PVD index, OBJ and PLY.

A frame holds the body as it is cut (fem.bodies.clipped_cells): whole cells as they are, the others
as simplices, each with the values of the cell it is of.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pliant.core.files import whole_file, write_text
from pliant.core.vectors import in_space
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.clipped_cells import ClippedCells, clipped_cells
from pliant.fem.bodies.render_mesh import own_surface, skin_of
from pliant.geometry.mesh_files import save_mesh

_CORNERS = {
    "quad": [0, 1, 3, 2],
    "hexahedron": [0, 1, 3, 2, 4, 5, 7, 6],
}
"""VTK goes round each face, Pliant counts x fastest."""


class FrameWriter:
    """Frames of one scene: what does not change from frame to frame is worked out once.

    Points have displacement and velocity, cells fill, youngs_modulus, poisson_ratio and density
    (small strains, at rest), von_mises, energy_density, stress and strain (fem.forces.stress), the
    tensors as nine numbers row by row.
    """

    def __init__(self, scene: Any):
        self.body: Body = scene.body
        self._clipped = clipped_cells(self.body)
        self._stress = scene.stress()
        self._constant: dict[str, np.ndarray] = {}
        if self._stress is not None:
            lam, mu = scene.constitution.moduli()
            self._constant = {
                "youngs_modulus": mu * (3.0 * lam + 2.0 * mu) / (lam + mu),
                "poisson_ratio": 0.5 * lam / (lam + mu),
                "density": scene.cell_material.densities(len(self.body.cells)),
            }

    def write(
        self, path: str | Path, u: np.ndarray, v: np.ndarray | None = None, *, scale: float = 1.0
    ) -> None:
        """A frame as .vtu, or .vtk (legacy); scale: of lengths, 1000 for millimetres."""
        values = dict(self._constant)
        if self._stress is not None:
            found = self._stress.at(u)
            values |= {"von_mises": found.von_mises, "energy_density": found.energy_density}
            # a tensor is looked at: half the bytes
            values |= {
                name: getattr(found, name).reshape(-1, 9).astype(np.float32)
                for name in ("stress", "strain")
            }
        write_frame(path, self.body, u, v, values=values, clipped=self._clipped, scale=scale)


def write_frame(
    path: str | Path,
    body: Body,
    u: np.ndarray,
    v: np.ndarray | None = None,
    *,
    values: Mapping[str, np.ndarray] | None = None,
    clipped: ClippedCells | None = None,
    scale: float = 1.0,
) -> None:
    """One frame as .vtu or .vtk: rest positions moved by u (nodes, dim), with displacement,
    velocity and fill.

    values: of the cells (cells, ...), by name. clipped: the cells as they are cut. scale: of
    lengths (and velocities). The points are the deformed ones; subtract `displacement` to get the
    rest shape.
    """
    import meshio

    name, corners = cell_block(body)
    blocks, rows = [(name, corners)], [np.arange(len(corners))]
    points: Any = sparse.identity(len(body.nodes), format="csr")
    if clipped is not None:
        simplex = "tetra" if body.dim == 3 else "triangle"
        blocks = [
            (name, corners[clipped.whole]), (simplex, clipped.simplices + len(body.nodes))
        ]  # fmt: skip
        points = sparse.vstack([points, clipped.points.matrix], format="csr")
        rows = [clipped.whole, clipped.cell]
        used, number = np.unique(
            np.concatenate([b[1].reshape(-1) for b in blocks]), return_inverse=True
        )
        points = points[used]
        ends = np.cumsum([b[1].size for b in blocks])[:-1]
        blocks = [
            (block[0], part.reshape(block[1].shape))
            for block, part in zip(blocks, np.split(number, ends), strict=True)
        ]
    kept = [i for i, row in enumerate(rows) if len(row)]
    moved: dict[str, Any] = {"displacement": in_space(scale * (points @ u))}
    if v is not None:
        moved["velocity"] = in_space(scale * (points @ v))
    by_cell: dict[str, Any] = {
        key: [array[rows[i]] for i in kept]
        for key, array in {"fill": body.fill, **(values or {})}.items()
    }
    mesh = meshio.Mesh(
        in_space(scale * (points @ (body.nodes + u))), [blocks[i] for i in kept],
        point_data=moved, cell_data=by_cell,
    )  # fmt: skip
    with whole_file(path) as temporary:
        if Path(path).suffix == ".vtk":
            meshio.write(temporary, mesh, file_format="vtk42")
        else:
            # uncompressed: a compressed frame is half as long and takes ten times as long to write
            meshio.write(temporary, mesh, file_format="vtu", compression=None)


def write_index(path: str | Path, frames: Sequence[tuple[float, str]]) -> None:
    """The PVD file that gives each VTU (a path relative to it) its time [s]."""
    rows = [f'    <DataSet timestep="{t:.17g}" part="0" file="{file}"/>' for t, file in frames]
    text = "\n".join(
        [
            '<?xml version="1.0"?>',
            '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">',
            "  <Collection>",
            *rows,
            "  </Collection>",
            "</VTKFile>",
            "",
        ]
    )
    write_text(path, text)


def write_surface(path: str | Path, body: Body, u: np.ndarray) -> None:
    """The deformed surface of a 3D body as triangles; the ending (.ply .obj .stl) chooses how.

    Of a body that was made from a mesh, that mesh.
    """
    mesh = skin_of(body) or own_surface(body)
    with whole_file(path) as temporary:
        save_mesh(temporary, mesh.positions(body.nodes + u), mesh.triangles)


def cell_block(body: Body) -> tuple[str, np.ndarray]:
    """The cells' VTK name and corners (cells, k)."""
    if not body.is_grid:
        corners = "tetra" if body.dim == 3 else "triangle"
        return corners + ("" if body.order == 1 else str(body.cells.shape[1])), body.cells
    name = "hexahedron" if body.dim == 3 else "quad"
    return name, body.cells[:, _CORNERS[name]]
