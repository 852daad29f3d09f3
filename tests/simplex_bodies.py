"""Bodies of simplices that several tests share, and what must hold of any."""

import numpy as np
import pytest

from pliant.fem.bodies.tet_body import TetBody as AnyTetBody
from pliant.fem.forces.cells import QUADRATIC, SIMPLEX
from pliant.geometry import shapes


def TetBody(*source):  # noqa: N802
    """Linear cells; quadratic ones have tests of their own."""
    return AnyTetBody(*source, order=1)


NODES = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
TETS = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])


@pytest.fixture(scope="module")
def ball():
    return TetBody(shapes.sphere(radius=1.0), 0.25)


@pytest.fixture(scope="module")
def brick():
    return TetBody(shapes.box(size=(1.0, 2.0, 3.0)), 0.4)


@pytest.fixture(scope="module")
def disc():
    return TetBody(shapes.circle(radius=1.0), 0.1)


def require_sound(body):
    """Positive volumes, a closed outward surface with the cells' volume, facets of their cells."""
    dim, surface = body.dim, body.surface
    assert body.kind == (SIMPLEX if body.order == 1 else QUADRATIC)
    assert not body.is_grid
    assert (body.cell_volumes > 0.0).all()
    assert body.cells.dtype == np.int32
    x = surface.positions(body.nodes)
    assert np.array_equal(x, body.nodes[surface.points.nodes[:, 0]])
    area = surface.area_vectors(x)
    assert np.abs(area.sum(axis=0)).max() < 1e-12 * np.abs(area).sum()
    inside = np.einsum("fi,fi->", area, x[surface.facets].mean(axis=1)) / dim
    assert inside == pytest.approx(body.volume, rel=1e-12)
    if dim == 3:
        sides = np.concatenate([surface.facets[:, [a, (a + 1) % 3]] for a in range(3)])
        lowest = {(int(a), int(b)) for a, b in sides}
        assert all((b, a) in lowest for a, b in lowest)
    owners = body.cells[surface.facet_cell]
    corners = surface.points.nodes[:, 0][surface.facets]
    assert (corners[:, :, None] == owners[:, None, :]).any(axis=2).all()
    assert np.unique(body.cells).size == len(body.nodes)
    ends = np.concatenate([body.nodes[body.cells[:, [a, b]]] for a in range(dim) for b in (dim,)])
    assert 0.3 < np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean() / body.spacing < 3.0
