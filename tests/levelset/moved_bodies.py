"""Ellipses and ellipsoids on a lattice, and motions of them with known answers."""

import numpy as np

import pliant as pl
from pliant.levelset.advection import Samples
from pliant.levelset.extension import Extension

RADII = (1.0, 0.6, 0.7)


def corner_nodes(shape, spacing):
    """Lattice places of all corners of cells with an inside corner."""
    body = pl.GridBody(shape, spacing, subdivisions=1)
    return np.round(body.lattice).astype(int)


def ellipsoid(dim, spacing, **options):
    """Shape, band and samples of the ellipsoid with half axes RADII."""
    shape = pl.shapes.ellipsoid(radii=RADII[:dim], center=(0.0,) * dim)
    band = Extension(corner_nodes(shape, spacing), **options)
    phi = shape.distance(band.lattice * spacing)
    return shape, band, Samples(band.lattice, phi, np.zeros(dim), spacing, band.active_count)


def surface_points(dim, count=3000):
    rng = np.random.default_rng(3)
    g = rng.standard_normal((count, dim))
    return g / np.linalg.norm(g, axis=1, keepdims=True) * RADII[:dim]


def turn(x, angle=0.7):
    c, s = np.cos(angle), np.sin(angle)
    out = x + 0.0
    out[:, 0], out[:, 1] = c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]
    return out + np.array([3.31, 0.2, 0.1])[: x.shape[1]]  # travels: the grid must follow


def shear(x):
    out = x + 0.0
    out[:, 0] += 0.5 * x[:, 1]
    return out


def bend(x, radius=2.5):
    """The x axis becomes a circle; det F = 1 - y / radius, so a symmetric body keeps its volume."""
    out = x + 0.0
    t, r = x[:, 0] / radius, radius - x[:, 1]
    out[:, 0], out[:, 1] = r * np.sin(t), radius - r * np.cos(t)
    return out


MOTIONS = {"turn": turn, "shear": shear, "bend": bend}
