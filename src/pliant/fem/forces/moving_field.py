"""A body's signed distance carried along with its displacements: body to level set.

On a grid body the samples are its own nodes and a band around them; on a mesh they are the nodes of
a lattice laid over it, moved by the field of their (or the nearest) cell.
"""

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.geometry.field import SampledField, check_size
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.shape import Shape
from pliant.levelset.advection import Grid, Samples, advect
from pliant.levelset.extension import LAYERS, Extension


class MovingField:
    """The level set of a body in motion.

    spacing: of the lattice over a mesh [m], its mean edge if not given; a grid body has its own
    unless that is turned.
    layers, extension: of the band, see levelset.extension.
    """

    def __init__(
        self,
        body: Body,
        *,
        spacing: float | None = None,
        layers: int = LAYERS,
        extension: str = "second_differences",
    ):
        self.body = body
        self._carrier: Embedding | None = None
        shape = body.shape or _surface_shape(body)
        if body.is_grid and body.axes is None:
            assert body.lattice is not None
            if spacing is not None and abs(spacing - body.spacing) > 1e-9 * body.spacing:
                raise BadInput(f"A grid body carries its field at its own spacing {body.spacing}.")
            h = body.spacing
            lattice = np.asarray(body.lattice, np.int64)
            origin = body.nodes[0] - h * lattice[0]
        else:
            h = float(spacing or body.spacing)
            lattice, origin = _lattice_over(shape, h), np.zeros(body.dim)
            self._carrier = body.locate(origin + h * lattice)
        self.band = Extension(lattice, layers=layers, method=extension)
        nodes = origin + h * self.band.lattice
        phi = shape.distance(nodes)
        self.samples = Samples(self.band.lattice, phi, origin, h, self.band.active_count)

    @property
    def spacing(self) -> float:
        """Of the lattice [m]."""
        return self.samples.spacing

    def displacements(self, u: np.ndarray) -> np.ndarray:
        """Of all samples, (samples, dim) [m], from those of the body's nodes (nodes, >= dim)."""
        return self.extended(np.asarray(u, float)[:, : self.body.dim])

    def extended(self, values: np.ndarray) -> np.ndarray:
        """Any nodal values (nodes, components) at all samples, (samples, components)."""
        values = np.asarray(values, float)
        return self.band.extend(values if self._carrier is None else self._carrier.at(values))

    def spread(self, dual: np.ndarray) -> np.ndarray:
        """The transpose of `displacements`: (samples, dim) to (nodes, dim)."""
        dual = self.band.spread(dual)
        return dual if self._carrier is None else self._carrier.spread(dual)

    def at(
        self,
        u: np.ndarray,
        *,
        method: str = "forward",
        grid: Grid | None = None,
        redistanced: bool = False,
    ) -> SampledField:
        """The field of the body displaced by u (nodes, dim) [m], see levelset.advection."""
        moved = self.displacements(u)
        return advect(self.samples, moved, method=method, grid=grid, redistanced=redistanced)


def _lattice_over(shape: Shape, h: float) -> np.ndarray:
    """Corners of the lattice's cells that have an inside corner, x fastest."""
    low, high = (np.asarray(b, float) for b in shape.bounds)
    first = np.floor(low / h).astype(np.int64) - 1
    size = tuple(int(s) for s in np.ceil(high / h).astype(np.int64) + 2 - first)
    check_size(size)
    places = np.indices(size).reshape(len(size), -1).T + first
    inside = (shape.distance(places * h) < 0.0).reshape(size)
    dim = inside.ndim
    cells = inside
    for axis in range(dim):
        low_half = tuple(slice(None, -1) if d == axis else slice(None) for d in range(dim))
        high_half = tuple(slice(1, None) if d == axis else slice(None) for d in range(dim))
        cells = cells[low_half] | cells[high_half]
    node = np.zeros(size, bool)
    for corner in range(2**dim):
        bits = [(corner >> d) & 1 for d in range(dim)]
        node[tuple(slice(b, n - 1 + b) for b, n in zip(bits, size, strict=True))] |= cells
    if not node.any():
        raise BadInput(f"No lattice node at spacing {h:g} is inside the body: use a smaller one.")
    found = np.argwhere(node)
    return found[np.lexsort(found.T)] + first


def _surface_shape(body: Body) -> Shape:
    if body.dim != 3:
        raise BadInput("The level set of a 2D body made of bare arrays is unknown: give its shape.")
    return MeshShape(vertices=body.surface.positions(body.nodes), faces=body.surface.facets)
