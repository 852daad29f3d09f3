"""Where a ray from the mouse first meets a surface."""

import numpy as np


def first_hit(
    points: np.ndarray, facets: np.ndarray, origin: np.ndarray, direction: np.ndarray
) -> np.ndarray | None:
    """The nearest point (3,) at which origin + t direction, t > 0, meets the triangles, or None.

    points: (n, 3) [m], facets: (m, 3). After Moeller and Trumbore (1997), all triangles at once.
    """
    a = points[facets[:, 0]]
    e, f = points[facets[:, 1]] - a, points[facets[:, 2]] - a
    h = np.cross(direction, f)
    size = np.einsum("ij,ij->i", e, h)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = origin - a
        u = np.einsum("ij,ij->i", s, h) / size
        q = np.cross(s, e)
        v = q @ direction / size
        t = np.einsum("ij,ij->i", f, q) / size
        hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
    if not hit.any():
        return None
    return origin + float(t[hit].min()) * np.asarray(direction, float)
