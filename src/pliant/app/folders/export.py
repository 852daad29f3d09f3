"""Trajectories as files that other programs open: VTU frames with a PVD index, OBJ and PLY.

A frame holds the body as it is cut (fem.bodies.clipped_cells): whole cells as they are, the others
as simplices, each with the values of the cell it is of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pliant.core.files import whole_file, write_text
from pliant.core.vectors import in_space
from pliant.dynamics.parts.part import Part, moved_body
from pliant.dynamics.parts.parts_scene import PartsScene
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
    tensors as nine numbers row by row. Of several bodies cells have their number, part.
    """

    def __init__(self, scene: Any):
        if isinstance(scene, PartsScene):
            each = zip(scene.scenes, scene.parts, strict=True)
            self._parts = [
                _RigidFrames(own, part) if part.rigid else _BodyFrames(own, part.body)
                for own, part in each
            ]
        else:
            self._parts = [_BodyFrames(scene, scene.body)]

    def write(
        self, path: str | Path, u: np.ndarray, v: np.ndarray | None = None, *, scale: float = 1.0
    ) -> None:
        """A frame as .vtu, or .vtk (legacy); scale: of lengths, 1000 for millimetres."""
        frames, first = [], 0
        for number, own in enumerate(self._parts):
            rows = slice(first, first + own.node_count)
            frames.append(own.frame(u[rows], None if v is None else v[rows], scale))
            if len(self._parts) > 1:
                frames[-1].values["part"] = [np.full(len(b[1]), number) for b in frames[-1].blocks]
            first = rows.stop
        _write(path, joined(frames))


class _BodyFrames:
    """Of one body: its cells as they are cut, and what they are made of."""

    def __init__(self, scene: Any, made: Body):
        """made: the body where its lattice is; a part's is elsewhere."""
        self.body: Body = scene.body
        self._clipped = clipped_cells(made)
        self._stress = scene.stress()
        self._constant: dict[str, np.ndarray] = {}
        if self._stress is not None:
            lam, mu = scene.constitution.moduli()
            self._constant = {
                "youngs_modulus": mu * (3.0 * lam + 2.0 * mu) / (lam + mu),
                "poisson_ratio": 0.5 * lam / (lam + mu),
                "density": scene.cell_material.densities(len(self.body.cells)),
            }

    @property
    def node_count(self) -> int:
        """Whose displacements it takes."""
        return len(self.body.nodes)

    def frame(self, u: np.ndarray, v: np.ndarray | None, scale: float) -> "Frame":
        """At displacement u (nodes, dim) and velocity v."""
        values = self._values(u)
        return frame_of(self.body, u, v, values=values, clipped=self._clipped, scale=scale)

    def _values(self, u: np.ndarray) -> dict[str, np.ndarray]:
        values = dict(self._constant)
        if self._stress is not None:
            found = self._stress.at(u)
            values |= {"von_mises": found.von_mises, "energy_density": found.energy_density}
            # a tensor is looked at: half the bytes
            values |= {
                name: getattr(found, name).reshape(-1, 9).astype(np.float32)
                for name in ("stress", "strain")
            }
        return values


class _RigidFrames(_BodyFrames):
    """Of a rigid part: the cells of the body that it was, which all strain alike."""

    def __init__(self, scene: Any, part: Part):
        self.body = moved_body(part.body, np.array(part.position, float))
        self._clipped = clipped_cells(part.body)
        self._stress = scene.stress()
        m = part.material
        self._constant = {
            name: np.array([float(getattr(m, name))])
            for name in ("youngs_modulus", "poisson_ratio", "density")
        }
        self._carried = scene.body.locate(self.body.nodes)
        self._share = float(m.youngs_modulus) / float(scene.material.youngs_modulus)

    @property
    def node_count(self) -> int:
        """The four that carry it."""
        return self._carried.node_count

    def frame(self, u: np.ndarray, v: np.ndarray | None, scale: float) -> "Frame":
        """At displacement u (4, 3) and velocity v of the nodes that carry it."""
        values, cells = self._values(u), len(self.body.cells)
        for name in ("von_mises", "energy_density", "stress"):  # of the smaller, stiffer cell
            values[name] = self._share * values[name]
        values = {k: np.repeat(found, cells, axis=0) for k, found in values.items()}
        ends = self._carried.at(u), None if v is None else self._carried.at(v)
        return frame_of(self.body, *ends, values=values, clipped=self._clipped, scale=scale)


@dataclass(frozen=True)
class Frame:
    """points (n, 3), blocks of cells (their VTK name, corners), what points and cells have."""

    points: np.ndarray
    blocks: list[tuple[str, np.ndarray]]
    moved: dict[str, np.ndarray]
    values: dict[str, list[np.ndarray]]


def joined(frames: Sequence[Frame]) -> Frame:
    """Several bodies as one frame."""
    if len(frames) == 1:
        return frames[0]
    firsts = np.cumsum([0, *(len(f.points) for f in frames)])
    blocks = [
        (name, corners + first)
        for f, first in zip(frames, firsts, strict=False)
        for name, corners in f.blocks
    ]
    return Frame(
        np.concatenate([f.points for f in frames]), blocks,
        {k: np.concatenate([f.moved[k] for f in frames]) for k in frames[0].moved},
        {k: [block for f in frames for block in f.values[k]] for k in frames[0].values},
    )  # fmt: skip


def frame_of(
    body: Body,
    u: np.ndarray,
    v: np.ndarray | None = None,
    *,
    values: Mapping[str, np.ndarray] | None = None,
    clipped: ClippedCells | None = None,
    scale: float = 1.0,
) -> Frame:
    """Rest positions moved by u (nodes, dim), with displacement, velocity and fill.

    values: of the cells (cells, ...), by name. clipped: the cells as they are cut. scale: of
    lengths (and velocities). The points are the deformed ones; subtract `displacement` to get the
    rest shape.
    """
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
    moved: dict[str, np.ndarray] = {"displacement": in_space(scale * (points @ u))}
    if v is not None:
        moved["velocity"] = in_space(scale * (points @ v))
    by_cell = {
        key: [array[rows[i]] for i in kept]
        for key, array in {"fill": body.fill, **(values or {})}.items()
    }
    positions = in_space(scale * (points @ (body.nodes + u)))
    return Frame(positions, [blocks[i] for i in kept], moved, by_cell)


def write_frame(path: str | Path, body: Body, u: np.ndarray, v: np.ndarray | None = None) -> None:
    """One frame of a body as .vtu or .vtk, every cell whole."""
    _write(path, frame_of(body, u, v))


def _write(path: str | Path, frame: Frame) -> None:
    import meshio

    moved: Any = frame.moved
    values: Any = frame.values
    mesh = meshio.Mesh(frame.points, list(frame.blocks), point_data=moved, cell_data=values)
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
