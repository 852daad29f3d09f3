"""Uniaxial stress: the corotated law P = E (l - 1), lateral stretch 1 - nu (l - 1), exactly.

The stretches are applied by rollers; the stress is measured from the internal forces, not
recomputed from the solution's strain.
"""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from frozen_frames import frozen_model
from pliant.core.launch import to_device, zeros

E = 3.0e4
STRETCHES = [0.5, 0.8, 1.2, 1.5, 2.0]
OFFSET = {2: np.array([0.013, 0.027]), 3: np.array([0.013, 0.027, 0.041])}
SIZE = {2: np.array([1.0, 0.6]), 3: np.array([1.0, 0.6, 0.4])}


def bar(kind, dim):
    """A bar with its lowest corner at OFFSET (aligned: at the origin)."""
    lo, size = OFFSET[dim], SIZE[dim]
    shape = pl.shapes.box(center=tuple(lo + size / 2), size=tuple(size))
    if kind == "aligned":
        return pl.GridBody(shape.translated(-lo), 0.2)
    return pl.TetBody(shape, edge_length=0.2, order=1)


def near_face(dim, axis, at, side):
    """The half space within a nanometre of the face x[axis] = at; side = +1: x above it."""
    normal = np.zeros(dim)
    normal[axis] = -side
    return pl.shapes.half_space(normal=tuple(normal), offset=-side * at + 1e-9)


def mean_stress(scene, u):
    """First Piola-Kirchhoff stress P = (1/V) sum of f_a (x) X_a, from the internal forces f."""
    system, n, dim = frozen_model(scene), len(u), scene.dim
    full = np.zeros((n, 3))
    full[:, :dim] = u
    field, force = to_device(full, wp.vec3d), zeros(n, wp.vec3d)
    system.elasticity.rotate(field)
    system.elasticity.add_force(field, 1.0, force)
    return force.numpy()[:, :dim].T @ scene.body.nodes / scene.body.volume


@pytest.mark.parametrize("nu", [0.3, 0.45])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("kind", ["aligned", "simplices"])
def test_corotated_law(kind, dim, nu):
    body = bar(kind, dim)
    lo = np.zeros(dim) if kind == "aligned" else OFFSET[dim]
    L = SIZE[dim][0]
    # plane strain holds the third direction: modulus and ratio of the plane
    modulus, ratio = (E, nu) if dim == 3 else (E / (1 - nu**2), nu / (1 - nu))
    rollers = [
        pl.Fixed(near_face(dim, axis, lo[axis], -1), axes="xyz"[axis]) for axis in range(dim)
    ]
    for stretch in STRETCHES:
        pulled = tuple((stretch - 1.0) * L * np.eye(dim)[0])
        scene = pl.Scene(
            body, pl.Material(E, nu), gravity=(0,) * dim, model="corotated", tolerance=1e-13,
            fixed=[*rollers, pl.Fixed(near_face(dim, 0, lo[0] + L, 1), pulled, axes="x")],
        )  # fmt: skip
        u = pl.solve_static(scene, tolerance=1e-12)
        exact = (body.nodes - lo) * (stretch - 1.0)
        exact[:, 1:] *= -ratio
        assert np.abs(u - exact).max() < 1e-8 * L, stretch
        P = np.zeros((dim, dim))
        P[0, 0] = modulus * (stretch - 1.0)
        assert mean_stress(scene, u) == pytest.approx(P, abs=1e-8 * modulus)


@pytest.mark.parametrize("kind", ["aligned", "simplices"])
def test_pulled_by_a_force(kind):
    """A dead traction E (l - 1) on the end gives the stretch l."""
    nu, stretch = 0.3, 1.5
    body = bar(kind, 3)
    lo = np.zeros(3) if kind == "aligned" else OFFSET[3]
    scene = pl.Scene(
        body, pl.Material(E, nu), gravity=(0, 0, 0), tolerance=1e-13,
        fixed=[pl.Fixed(near_face(3, a, lo[a], -1), axes="xyz"[a]) for a in range(3)],
        loads=[pl.Traction(
            near_face(3, 0, lo[0] + 1.0, 1), lambda x, n: n * [E * (stretch - 1), 0, 0]
        )],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-12)
    exact = (body.nodes - lo) * (stretch - 1.0) * [1.0, -nu, -nu]
    assert np.abs(u - exact).max() < 1e-8


@pytest.mark.parametrize("stretch", STRETCHES)
@pytest.mark.parametrize("nu", [0.3, 0.45])
def test_cut_cells(stretch, nu):
    """A ball held all around in the uniaxial state carries the uniaxial stress, cuts or not."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.5, center=(0.02, 0.01, 0.03)), 0.17)
    assert body.fill.min() < 1e-3
    F = np.diag([stretch, 1 - nu * (stretch - 1), 1 - nu * (stretch - 1)])
    everywhere = pl.shapes.box(center=(0, 0, 0), size=(9, 9, 9))
    scene = pl.Scene(
        body, pl.Material(E, nu), gravity=(0, 0, 0), tolerance=1e-13,
        fixed=[pl.Fixed(everywhere, lambda x, t: x @ (F - np.eye(3)))],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-12)
    assert np.abs(u - body.nodes @ (F - np.eye(3))).max() < 1e-8
    assert mean_stress(scene, u) == pytest.approx(np.diag([E * (stretch - 1), 0, 0]), abs=1e-8 * E)


def test_turned_specimen():
    """Stretched and turned by 100 degrees: the same law in the turned frame (simplices)."""
    nu, stretch, angle = 0.3, 1.4, np.radians(100.0)
    c, s = np.cos(angle), np.sin(angle)
    Q = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    F = Q @ np.diag([stretch, 1 - nu * (stretch - 1), 1 - nu * (stretch - 1)])
    body = bar("simplices", 3)
    everywhere = pl.shapes.box(center=(0, 0, 0), size=(9, 9, 9))
    scene = pl.Scene(
        body, pl.Material(E, nu), gravity=(0, 0, 0), tolerance=1e-13,
        fixed=[pl.Fixed(everywhere, lambda x, t: x @ F.T - x)],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-12)
    assert np.abs(u - body.nodes @ (F - np.eye(3)).T).max() < 1e-8
    P = Q @ np.diag([E * (stretch - 1), 0, 0])
    assert mean_stress(scene, u) == pytest.approx(P, abs=1e-8 * E)
