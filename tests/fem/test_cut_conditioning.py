"""Small cuts: filled fractions from 1 to 1e-8 change neither the matrix's condition nor the solver.

Without stabilisation the condition number grows as the published powers of the filled fraction
(de Prenter et al. 2017): -1 for a layer of cut cells, -2 for a corner in 2D, -7/3 in 3D.
"""

import numpy as np
import pytest
import warp as wp
from scipy.linalg import eigvalsh

import pliant as pl
import pliant.fem.bodies.grid_body as grid_body
from frozen_frames import frozen_model
from pliant.core.launch import to_device, zeros
from pliant.geometry.field import SampledField
from pliant.linalg.pcg import BlockJacobi, ConjugateGradients, Tolerance

FILLS = [1.0, 0.3, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]
CELLS = 3


@pytest.fixture(autouse=True)
def _without_snapping(monkeypatch):
    """Cuts this thin are snapped away by default; here they must stay."""
    monkeypatch.setattr(grid_body, "SNAP", 0.0)


def cut_body(kind, fill, dim, ghost_penalty=None):
    """A cube of CELLS full cells a side; the last cells along the cut axes are filled to `fill`.

    slab: along x; edge: the corner of the xy-section is cut by a plane; corner: by an oblique
    plane.
    For the planes the corner cell's filled fraction is `fill`, and its neighbours' too nearly.
    """
    n, cut_axes = CELLS, {"slab": 1, "edge": 2, "corner": dim}[kind]
    count = {1: 1.0, 2: 2.0, 3: 6.0}[cut_axes]
    grid = np.stack(np.meshgrid(*[np.arange(-1.0, n + 2)] * dim, indexing="ij"), axis=-1)
    # distances to the lower faces, all on nodes; and to the plane x1 + .. + xm = n m + depth
    lower = (-grid).max(axis=-1)
    depth = (count * fill) ** (1.0 / cut_axes)  # a simplex of that leg length fills `fill`
    if cut_axes == 1:
        upper = grid[..., 0] - (n + fill)
        others = [grid[..., d] - n for d in range(1, dim)]
    else:
        upper = None
        others = [grid[..., d] - n for d in range(cut_axes, dim)]
        reach = grid[..., :cut_axes].sum(axis=-1) - (n * cut_axes + depth)
        far = (grid[..., :cut_axes] - (n + 1)).max(axis=-1)
        upper = np.maximum(reach / np.sqrt(cut_axes), far)
    phi = np.max([lower, upper, *others], axis=0)
    field = SampledField(values=phi, origin=(-1.0,) * dim, spacing=1.0)
    options = {} if ghost_penalty is None else {"ghost_penalty": ghost_penalty}
    return pl.GridBody(field, subdivisions=1, **options)


def held_system(body):
    """Held on the face x = 0."""
    normal = tuple(np.eye(body.dim)[0])
    region = pl.shapes.half_space(normal=normal, offset=1e-9)
    scene = pl.Scene(body, pl.Material(1.0, 0.3), model="linear", fixed=[pl.Fixed(region)])
    s = frozen_model(scene)
    s.elasticity.assemble(s.matrix, s.inertia.mass, mass_factor=0.0, stiffness_factor=1.0)
    s.walls.operator.assemble(s.matrix, 1.0)
    return s


def condition_number(s, *, scaled):
    free = np.flatnonzero(s.boundary.free.reshape(-1))
    K = s.matrix.to_scipy().tocsr()[free][:, free].toarray()
    if scaled:
        d = 1.0 / np.sqrt(np.diag(K))
        K = d[:, None] * K * d
    values = eigvalsh(0.5 * (K + K.T))
    return values[-1] / values[0]


def iterations(s):
    force = np.zeros((s.node_count, 3))
    force[:, : s.scene.dim] = s.masses[:, None]
    b, x = to_device(force * s.boundary.free, wp.vec3d), zeros(s.node_count, wp.vec3d)
    jacobi = BlockJacobi(s.node_count)
    jacobi.update(s.matrix)
    solution = ConjugateGradients(s.matrix, jacobi).solve(b, x, Tolerance(relative=1e-8))
    assert solution.outcome.ok
    return solution.iterations


@pytest.mark.parametrize(("kind", "dim"), [("slab", 3), ("edge", 3), ("corner", 3), ("corner", 2)])
def test_stabilised(kind, dim):
    conditions, counts, smallest = [], [], []
    for fill in FILLS:
        body = cut_body(kind, fill, dim)
        s = held_system(body)
        conditions.append(condition_number(s, scaled=False))
        counts.append(iterations(s))
        smallest.append(body.fill.min())
    assert min(smallest) < 2e-8
    assert max(conditions) < 10.0 * min(conditions)
    assert max(counts) < 1.5 * min(counts)


@pytest.mark.parametrize(
    ("kind", "dim", "power"), [("slab", 3, -1.0), ("corner", 2, -2.0), ("corner", 3, -7 / 3)]
)
def test_blow_up_without_stabilisation(kind, dim, power):
    fills = np.array([1e-2, 1e-3, 1e-4])
    found = []
    for fill in fills:
        body = cut_body(kind, fill, dim, ghost_penalty=0.0)
        assert fill / 6 < body.fill.min() <= 1.000001 * fill
        found.append(condition_number(held_system(body), scaled=False))
    slope = np.polyfit(np.log(fills), np.log(found), 1)[0]
    assert slope == pytest.approx(power, abs=0.25)
