"""From fused distances to one closed body: the box it is in, the table, stray pieces, cavities."""

from typing import Any

import numpy as np
from scipy import ndimage

from pliant.core.errors import BadInput

CROWDED = 3
"""Points that a coarse cell needs to count: wild pixels are scattered thinly."""

PLANE_TRIALS = 400
"""Planes through three points that are tried. With a tenth of the points on the table each one is
on it with a chance of 0.001, with a third 0.04; the coarse look at it needs about a third."""

PLANE_POINTS = 20_000
TABLE_SHARE = 0.05
"""Of the points that must lie on a plane for it to be called a table."""


def crowded_box(points: np.ndarray, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Box (lo, hi) of the largest connected crowd of points, looked at in cells of this width."""
    low, high = np.percentile(points, (1, 99), axis=0)
    room = np.maximum(high - low, cell)
    near = ((points > low - room) & (points < high + room)).all(axis=1)
    points = points[near]
    first = points.min(axis=0)
    cell = max(cell, float(np.max(np.ptp(points, axis=0))) / 200.0)
    place = ((points - first) / cell).astype(np.int64)
    shape = place.max(axis=0) + 1
    flat = np.ravel_multi_index(tuple(place.T), tuple(shape))
    count = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    found: Any = ndimage.label(count >= min(CROWDED, count.max()), np.ones((3, 3, 3)))
    labels, _ = found
    crowd = np.bincount(labels.ravel(), weights=count.ravel())
    crowd[0] = 0.0
    own = points[labels.ravel()[flat] == int(np.argmax(crowd))]
    return own.min(axis=0), own.max(axis=0)


def find_table(
    points: np.ndarray, thickness: float, towards: np.ndarray
) -> tuple[np.ndarray, float]:
    """Normal (towards a point above it) and offset of the plane that most points lie on.

    Planes through three random points (fixed seed), the best one fitted again to its own points.
    """
    rng = np.random.default_rng(0)
    some = points[rng.permutation(len(points))[:PLANE_POINTS]]
    best, most = None, 0
    for triple in rng.integers(0, len(some), (PLANE_TRIALS, 3)):
        a, b, c = some[triple]
        normal = np.cross(b - a, c - a)
        size = np.linalg.norm(normal)
        if size == 0.0:
            continue
        normal /= size
        on = np.abs((some - a) @ normal) < thickness
        if on.sum() > most:
            best, most = on, int(on.sum())
    if best is None or most < TABLE_SHARE * len(some):
        raise BadInput(
            "No table was found: no plane holds a twentieth of the points; scan without --table, "
            "or give its normal and offset (--table 0,1,0,0.02)."
        )
    normal, centre = np.zeros(3), np.zeros(3)
    for _ in range(3):
        centre = some[best].mean(axis=0)
        normal = np.linalg.svd(some[best] - centre, full_matrices=False)[2][2]
        best = np.abs((some - centre) @ normal) < thickness
    offset = float(centre @ normal)
    if normal @ towards < offset:
        normal, offset = -normal, -offset
    return normal, offset


def one_piece(phi: np.ndarray, far: float) -> tuple[np.ndarray, int, int]:
    """The largest piece, without cavities; and how many pieces and cavities went.

    phi: negative inside. far: the distance given to nodes that change sides. The border is outside,
    so that the surface is closed.
    """
    phi = phi.copy()
    for axis in range(phi.ndim):
        for side in (0, -1):
            border = phi[(slice(None),) * axis + (side,)]
            border[border <= 0.0] = far
    found: Any = ndimage.label(phi < 0.0)
    labels, pieces = found
    if pieces == 0:
        raise BadInput("Nothing solid is left of the scan: check poses, units and spacing.")
    size = np.bincount(labels.ravel())
    size[0] = 0
    body = labels == int(np.argmax(size))
    phi[(labels > 0) & ~body] = far
    found = ndimage.label(~body)
    labels, count = found
    outside = labels[(0,) * phi.ndim]
    cavity = ~body & (labels != outside)
    phi[cavity] = -far
    return phi, pieces - 1, count - 1
