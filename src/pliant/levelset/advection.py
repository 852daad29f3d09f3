"""Three ways to carry a level set along with displacements (seed 000, section 2.5.2.5).

    semi_lagrangian  phi(x) = phi_0(x - u(x))            (2.5.22) takes u as if it were its inverse
    shepard          phi(x) = phi_0(x + v(x)), v = u^-1  (2.5.25) inverse by Shepard's weights
    forward          blends displaced samples            (algorithm A.2), the default

All write into a grid that follows the body, aligned with the rest lattice.
"""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from pliant.core.errors import BadInput
from pliant.geometry.field import SampledField, check_size
from pliant.geometry.redistance import redistance
from pliant.levelset.forward_advection import KERNEL, forward_advect
from pliant.levelset.nearest_node import nearest_nodes
from pliant.levelset.shepard import inverse_displacements

METHODS = ("forward", "shepard", "semi_lagrangian")

BORDER = 4
"""Nodes kept around the displaced active nodes: what a redistancing and a ray marcher look at."""


@dataclass(frozen=True)
class Grid:
    """Nodes at origin + spacing * (first + index), index in `shape`."""

    first: np.ndarray
    shape: tuple[int, ...]
    origin: np.ndarray
    spacing: float

    @property
    def corner(self) -> np.ndarray:
        """Position of the first node [m]."""
        return self.origin + self.spacing * self.first

    def cells(self, points: np.ndarray) -> np.ndarray:
        """Positions (n, dim) in cells from the first node."""
        return (points - self.corner) / self.spacing

    def points(self) -> np.ndarray:
        """Positions of all nodes (n, dim), last index fastest."""
        return self.corner + self.spacing * np.indices(self.shape).reshape(len(self.shape), -1).T


@dataclass(frozen=True)
class Samples:
    """A level set on the nodes of a lattice, active ones first, and where the lattice lies.

    lattice: (n, dim) integers, node at origin + spacing * lattice; phi: (n,) [m];
    active_count: how many of them, from the first on, are the body's own.
    """

    lattice: np.ndarray
    phi: np.ndarray
    origin: np.ndarray
    spacing: float
    active_count: int

    @property
    def nodes(self) -> np.ndarray:
        """Rest positions (n, dim) [m]."""
        return self.origin + self.spacing * self.lattice


def following_grid(samples: Samples, u: np.ndarray, *, border: int = BORDER) -> Grid:
    """The lattice's nodes around all displaced active nodes; u: (n, dim) [m]."""
    now = samples.lattice[: samples.active_count] + u[: samples.active_count] / samples.spacing
    if not np.isfinite(now).all():
        raise BadInput("The displacements are not finite: there is no surface to carry along.")
    first = np.floor(now.min(axis=0)).astype(np.int64) - border
    shape = tuple(int(s) for s in np.ceil(now.max(axis=0)).astype(np.int64) + border + 1 - first)
    check_size(shape)
    return Grid(first, shape, np.asarray(samples.origin, float), samples.spacing)


def advect(
    samples: Samples,
    u: np.ndarray,
    *,
    method: str = "forward",
    grid: Grid | None = None,
    kernel: float = KERNEL,
    redistanced: bool = False,
) -> SampledField:
    """The level set carried along by u (n, dim) [m], known at all samples (see Extension).

    grid: where to write it, the one that follows the body if not given. redistanced: make it a
    distance again afterwards; the surface stays where the method put it.
    """
    if method not in METHODS:
        raise BadInput(f"method must be one of {', '.join(METHODS)}, not '{method}'.")
    u = np.asarray(u, float)
    if u.shape != samples.lattice.shape:
        raise BadInput(f"The displacements have shape {u.shape}, not {samples.lattice.shape}.")
    grid = grid or following_grid(samples, u)
    if method == "forward":
        places = grid.cells(samples.nodes + u)
        found = forward_advect(places, samples.phi, grid.shape, radius=kernel)
        values = fill_holes(found.values, found.holes, spacing=grid.spacing)
    else:
        if method == "shepard":
            places = grid.cells(samples.nodes + u)
            back, missing = inverse_displacements(places, u / grid.spacing, grid.shape)
        else:
            at = grid.first + np.indices(grid.shape).reshape(len(grid.shape), -1).T
            back, missing = _dense(samples, -u / grid.spacing, at)
        origin = grid.first + np.indices(grid.shape).reshape(len(grid.shape), -1).T + back
        values = _rest_values(samples, origin).reshape(grid.shape)
        values = fill_holes(values, missing.reshape(grid.shape), spacing=grid.spacing)
    if redistanced:
        values = redistance(values, spacing=grid.spacing)
    return SampledField(values=values, origin=tuple(grid.corner), spacing=grid.spacing)


def fill_holes(values: np.ndarray, holes: np.ndarray, *, spacing: float) -> np.ndarray:
    """Nodes that no sample reached, filled.

    Those connected to the border lie beyond the band: the nearest known value plus the way there.
    Others are gaps where the body is stretched: means of known neighbours, inwards from the rim.
    """
    if not holes.any():
        return values
    if holes.all():
        raise BadInput("No displaced sample came near the grid: check the displacements.")
    values = values.copy()
    grown = np.pad(holes, 1, constant_values=True)
    labels, _ = ndimage.label(grown)  # pyright: ignore[reportGeneralTypeIssues]
    inner = tuple(slice(1, -1) for _ in range(values.ndim))
    outside = holes & (labels[inner] == labels[(0,) * values.ndim])
    gaps = holes & ~outside
    known = ~holes
    while gaps.any():
        total, count = _neighbour_sums(np.where(known, values, 0.0)), _neighbour_sums(known * 1.0)
        ready = gaps & (count > 0)
        values[ready] = total[ready] / count[ready]
        known, gaps = known | ready, gaps & ~ready
    if outside.any():
        way, nearest = nearest_nodes(known)
        start = np.maximum(values.reshape(-1)[nearest[outside]], 0.0)
        values[outside] = start + spacing * way[outside]
    return values


def _neighbour_sums(values: np.ndarray) -> np.ndarray:
    weights = ndimage.generate_binary_structure(values.ndim, values.ndim).astype(float)
    return ndimage.convolve(values, weights, mode="constant")


def _dense(samples: Samples, values: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodal values (n, dim) at lattice places (m, dim), from the nearest sample outside."""
    low, index, filled = _box(samples)
    inside = np.clip(at - low, 0, np.array(index.shape) - 1)
    return values[filled[tuple(inside.T)]], np.zeros(len(at), bool)


def _box(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First place, rows of samples (-1 where there is none), rows of the nearest one."""
    low = samples.lattice.min(axis=0)
    size = tuple(int(s) for s in samples.lattice.max(axis=0) - low + 1)
    index = np.full(size, -1, np.int64)
    index[tuple((samples.lattice - low).T)] = np.arange(len(samples.lattice))
    nearest = ndimage.distance_transform_edt(index < 0, return_distances=False, return_indices=True)
    return low, index, index[tuple(nearest)]  # pyright: ignore[reportArgumentType]


def _rest_values(samples: Samples, places: np.ndarray) -> np.ndarray:
    """phi_0 at lattice places (m, dim), linear between samples, growing with distance beyond."""
    low, index, filled = _box(samples)
    distance = ndimage.distance_transform_edt(index < 0)
    phi = samples.phi[filled] + samples.spacing * np.asarray(distance)
    local = places - low
    last = np.array(index.shape) - 1
    held = np.clip(local, 0, last)
    inside = ndimage.map_coordinates(phi, held.T, order=1)
    return inside + samples.spacing * np.linalg.norm(local - held, axis=1)
