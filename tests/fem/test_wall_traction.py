"""The body's own stress at weak walls, in turning frames: an energy; walls end in place."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel


def held_model(dim, axes):
    """A block whose lattice lies across the world's axes, held around its end."""
    if dim == 2:
        shape = pl.shapes.box(center=(0.06, 0), size=(0.12, 0.03))
        region = pl.shapes.box(center=(0, 0), size=(0.03, 0.1))
    else:
        turn = {"angle": 0.4, "axis": (1, 2, 3)}
        shape = pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)).rotated(**turn)
        region = pl.shapes.box(center=(0, 0, 0), size=(0.03, 0.1, 0.1)).rotated(**turn)
    scene = pl.Scene(
        pl.GridBody(shape, spacing=0.0081), pl.Material(6e4, 0.45, 1070.0),
        gravity=(0, -9.81, 0)[:dim], fixed=[pl.Fixed(region, axes=axes)],
    )  # fmt: skip
    return ImplicitModel(scene)


@pytest.fixture(scope="module", params=[(3, "xyz"), (3, "x"), (2, "xy")], ids=str)
def turned(request):
    """A model, and a displacement that turns its walls' cells by 35 degrees and tears at them."""
    dim, axes = request.param
    model, rng = held_model(dim, axes), np.random.default_rng(0)
    X = np.zeros((model.node_count, 3))
    X[:, :dim] = model.scene.body.nodes
    Q = Rotation.from_rotvec([0, 0, 0.6] if dim == 2 else [0.3, -0.2, 0.5]).as_matrix()
    u = X @ Q.T - X + 0.002 * rng.normal(size=X.shape)
    t = model.tractions.tractions
    given = 0.001 * rng.normal(size=(*t.cells.shape, 3))
    given[..., dim:] = 0.0
    d = 1e-3 * rng.normal(size=X.shape) * model.boundary.free
    return model, t, u * model.boundary.free, given, d


def force(t, u, given):
    out = zeros(len(u), wp.vec3d)
    t.add_force(to_device(u, wp.vec3d), given, out, factor=1.0)
    return out.numpy()


def test_the_force_is_the_energys_gradient(turned):
    _, t, u, given, d = turned
    slope = float(np.sum(force(t, u, given) * d))

    def rest(eps):
        ahead, behind = (t.energy(to_device(u + s * d, wp.vec3d), given) for s in (eps, -eps))
        return abs((ahead - behind) / (2 * eps) - slope)

    assert rest(0.1) > 0.0
    assert np.log2(rest(0.1) / rest(0.05)) == pytest.approx(2.0, abs=0.1)


def test_the_second_derivative_is_that_of_the_force(turned):
    model, t, u, given, d = turned
    found = zeros(len(u), wp.vec3d)
    t.add_change(to_device(u, wp.vec3d), given, to_device(d, wp.vec3d), found, factor=1.0)
    eps = 1e-4
    wanted = (force(t, u + eps * d, given) - force(t, u - eps * d, given)) / (2 * eps)
    assert np.abs(found.numpy() - wanted).max() < 1e-8 * np.abs(wanted).max()


def test_numpys_formula_is_the_kernels(turned):
    _, t, u, given, _ = turned
    out = np.zeros_like(u)
    np.add.at(out, t.cells, t.gradient(t._rotations(u), u, given, *t._products))
    wanted = force(t, u, given)
    assert np.abs(out - wanted).max() < 1e-12 * np.abs(wanted).max()


def test_the_pull_of_a_wall_is_the_energys_change_by_what_is_given(turned):
    """The hand that moves a clamp by g: dE/dg, the wall's own turn included."""
    _, t, u, given, _ = turned
    d = 1e-3 * np.random.default_rng(1).normal(size=given.shape) * t.walls.axes[:, None, :]
    d[..., t.walls.body.dim :] = 0.0
    u = to_device(u, wp.vec3d)
    eps = 1e-4
    ahead, behind = (t.energy(u, given + s * d) for s in (eps, -eps))
    slope = float(np.sum(t.pull_of_given(u, given) * d))
    assert slope == pytest.approx((ahead - behind) / (2 * eps), rel=1e-7)


def test_rigid_motion_with_the_wall_costs_nothing():
    """A clamp that turns by 100 degrees takes the body along: no force, no energy."""
    model = held_model(3, "xyz")
    t, X = model.tractions.tractions, model.scene.body.nodes
    Q = Rotation.from_rotvec([0.0, 1.2, 1.3]).as_matrix()
    u = X @ Q.T - X + np.array([0.01, 0.02, 0.0])
    scale = np.abs(force(t, 0.1 * u, None)).max()
    assert np.abs(force(t, u, u[t.cells])).max() < 1e-11 * scale
    assert abs(t.energy(to_device(u, wp.vec3d), u[t.cells])) < 1e-14


@pytest.mark.parametrize("turn", [0.0, 1.0, 2.5])
def test_a_held_cell_is_stable_however_far_it_turned(turn):
    """Cells, penalties and tractions at a rigid turn: what only the rest frame's terms lost.

    A wall that turns with the body sees what it saw at rest; for one that stands still there is no
    such identity, only the bound.
    """
    model = held_model(2, "xy")
    X = np.zeros((model.node_count, 3))
    X[:, :2] = model.scene.body.nodes
    Q = Rotation.from_rotvec([0, 0, turn]).as_matrix()
    moved = to_device(X @ Q.T - X, wp.vec3d)
    model.assemble_rest()
    rest = smallest(model)
    tractions = model.tractions.tractions
    found = []
    for given in (moved.numpy()[tractions.cells], None):
        model.elastic.operator.assemble(
            model.matrix, model.inertia.mass, moved, mass_factor=0.0, stiffness_factor=1.0,
            project=True,
        )  # fmt: skip
        model.walls.operator.assemble(model.matrix, 1.0)
        tractions.assemble(model.matrix, moved, given, 1.0, exact=False)
        found.append(smallest(model))
    assert found[0] == pytest.approx(rest, rel=1e-6)
    assert found[1] > 0.8 * rest > 0.0


def smallest(model):
    free = np.flatnonzero(model.boundary.free.reshape(-1))
    K = model.matrix.to_scipy().tocsr()[free][:, free].toarray()
    return np.linalg.eigvalsh(0.5 * (K + K.T))[0]


BLOCK = pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03))


def wrapped(across, **options):
    """The silicone block in a clamp that wraps 5 mm around its end, at an odd offset."""
    h = 0.03 / across
    offset = (0.3 * h, 0.21 * h, -0.4 * h)
    region = pl.shapes.box(center=(-0.045, 0, 0), size=(0.1, 0.2, 0.2)).translated(offset)
    return pl.Scene(
        pl.GridBody(BLOCK.translated(offset), spacing=h), pl.Material(6e4, 0.3, 1070.0),
        gravity=(0, -9.81, 0), fixed=[pl.Fixed(region)], **options,
    ), np.array([0.1199, 0, 0]) + offset  # fmt: skip


def test_a_clamp_that_ends_within_a_cell_ends_there():
    """First frequency by fourth order tetrahedra: 2.567 Hz; by penalties alone 2.702, 2.559."""
    found = [pl.modes(wrapped(across)[0], 1).frequencies[0] for across in (2, 4)]
    assert found == pytest.approx([2.567, 2.567], rel=0.015)


def test_steps_hold_walls_as_modes_do():
    """A small swing, two cells across: its period is that of the first mode."""
    scene, tip = wrapped(2)
    f = pl.modes(scene, 1).frequencies[0]
    small = replace(scene, gravity=(0, -0.05, 0), integrator=pl.Newmark2(0.02 / f))
    y = pl.simulate(small, 99).at([tip])[:, 0, 1]  # two periods, so that the mean is the middle
    crossings = np.flatnonzero((y[:-1] > y.mean()) != (y[1:] > y.mean()))
    at = [k + (y.mean() - y[k]) / (y[k + 1] - y[k]) for k in crossings]
    # the trapezoidal rule at 50 steps a period is 0.13 % slow
    assert 2.0 * np.mean(np.diff(at)) * 0.02 == pytest.approx(1.0013, abs=0.01)
