"""Trajectories as files that other programs open: VTU frames with a PVD index, OBJ and PLY."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.files import whole_file, write_text
from pliant.fem.bodies.body import Body
from pliant.geometry.mesh_files import save_mesh

_CORNERS = {
    "quad": [0, 1, 3, 2],
    "hexahedron": [0, 1, 3, 2, 4, 5, 7, 6],
}
"""VTK goes round each face, Pliant counts x fastest."""


def write_frame(
    path: str | Path,
    body: Body,
    u: np.ndarray,
    v: np.ndarray | None = None,
    *,
    stress: np.ndarray | None = None,
) -> None:
    """One frame as VTU: rest positions moved by u (nodes, dim), with displacement, velocity, fill.

    stress: after von Mises, (cells,) [Pa], as `von_mises`. The points are the deformed ones;
    subtract `displacement` to get the rest shape.
    """
    import meshio

    name, cells = cell_block(body)
    points: dict[str, Any] = {"displacement": three(u)}
    if v is not None:
        points["velocity"] = three(v)
    values: dict[str, Any] = {"fill": [body.fill]}
    if stress is not None:
        values["von_mises"] = [stress]
    mesh = meshio.Mesh(three(body.nodes + u), [(name, cells)], point_data=points, cell_data=values)
    with whole_file(path) as temporary:
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
    """The deformed surface of a 3D body as triangles; the ending (.ply .obj .stl) chooses how."""
    with whole_file(path) as temporary:
        save_mesh(temporary, body.surface.positions(body.nodes + u), body.surface.facets)


def cell_block(body: Body) -> tuple[str, np.ndarray]:
    """The cells' VTK name and corners (cells, k)."""
    if not body.is_grid:
        corners = "tetra" if body.dim == 3 else "triangle"
        return corners + ("" if body.order == 1 else str(body.cells.shape[1])), body.cells
    name = "hexahedron" if body.dim == 3 else "quad"
    return name, body.cells[:, _CORNERS[name]]


def three(values: np.ndarray) -> np.ndarray:
    """Vectors (n, 2 or 3) as (n, 3)."""
    values = np.asarray(values, float)
    out: Any = np.zeros((len(values), 3))
    out[:, : values.shape[1]] = values
    return out
