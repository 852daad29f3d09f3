"""The level-set cost: derivatives, and a fit through it (seed 000, eq. 5.4.3)."""

import numpy as np
import pytest

import pliant as pl
from pliant.fem.forces.moving_field import MovingField
from pliant.geometry.field import SampledField
from pliant.inverse.measuring.level_set_cost import LevelSetMeasure, LevelSets
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.gradient_check import gradient_mismatch
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

H = 0.2


def bar(dim, **material):
    size = (1.6, 0.8, 0.8)[:dim]
    left = pl.shapes.box(center=(-0.8, 0.0, 0.0)[:dim], size=(0.02, 1.0, 1.0)[:dim])
    values = {"youngs_modulus": 2000.0, "poisson_ratio": 0.3} | material
    return pl.Scene(
        pl.GridBody(pl.shapes.box(size=size, center=(0.0,) * dim), H),
        material=pl.Material(density=20.0, mass_damping=0.1, stiffness_damping=0.01, **values),
        gravity=(0.0, -9.81, 0.0)[:dim],
        fixed=[pl.Fixed(left)],
        integrator=pl.Newmark1(dt=0.04, theta=0.6),
        tolerance=1e-12,
    )


@pytest.fixture(scope="module", params=[2, 3], ids=["2D", "3D"])
def case(request):
    scene = bar(request.param)
    run = pl.simulate(scene, steps=4)
    return scene, run, LevelSets.of(run)


def three(u):
    return np.pad(u, ((0, 0), (0, 3 - u.shape[1])))


def test_taylor_and_dot_product(case):
    """By the nodes' displacements: rate 1.9, tangent and adjoint to 1e-10."""
    scene, run, seen = case
    measure = LevelSetMeasure(scene, seen)
    loss = Loss(0.1 * H, "squares")
    rng = np.random.default_rng(0)
    x = scene.body.nodes
    u = three(0.8 * run.displacements[-1])
    d = three(np.sin(2.0 * x @ rng.standard_normal((scene.dim, scene.dim)) + 1.0) * H)
    still = np.zeros_like(u)
    found = measure.linear(3, (u, still), loss)
    bar_u, bar_v = found.pull(found.weight(loss) * found.r)
    assert not bar_v.any()
    J = loss(found.r)[0].sum()
    steps = 0.1 / 2.0 ** np.arange(4)
    rest = [
        abs(loss(measure.residuals(3, u + e * d)[0])[0].sum() - J - e * np.vdot(bar_u, d))
        for e in steps
    ]
    assert np.log2(np.array(rest[:-1]) / rest[1:]).min() >= 1.9
    left = found.along([(d, still)])[:, 0] @ (loss(found.r)[1] * found.r)
    assert left == pytest.approx(np.vdot(bar_u, d), rel=1e-10)


def test_the_truth_has_no_residual(case):
    scene, run, seen = case
    measure = LevelSetMeasure(scene, seen)
    r, slope, _ = measure.residuals(3, three(run.displacements[-1]))
    assert np.abs(r).max() < 1e-12
    assert slope.max() == pytest.approx(1.0, abs=0.05)


def test_gradient_through_the_simulation(case):
    """Adjoint and tangent of the whole run, and Young's modulus found again."""
    scene, _, seen = case
    unknowns = UnknownSet((make_unknown("youngs_modulus", 2300.0, scene),))
    problem = Problem(scene, seen, unknowns)
    apart, off = gradient_mismatch(problem, unknowns.start(), Loss(0.1 * H))
    assert apart < 1e-8
    assert off < 1e-5
    fit = pl.reconstruct(scene, seen, {"youngs_modulus": 2300.0})
    assert fit.values["youngs_modulus"] == pytest.approx(2000.0, rel=1e-4)


@pytest.mark.slow
def test_noisy_level_sets_are_fitted_within_their_error_bars():
    """Noise of a fifth of a cell at every node."""
    scene = bar(2)
    run = pl.simulate(scene, steps=6)
    errors = []
    for seed in range(4):
        seen = LevelSets.of(run, noise=0.2 * H, seed=seed)
        fit = pl.reconstruct(scene, seen, {"youngs_modulus": 2300.0})
        errors.append((fit.values["youngs_modulus"] - 2000.0) / fit.sigma["youngs_modulus"])
    assert np.abs(errors).max() < 3.0


def test_true_distances_are_blurred_alike():
    """A ball at rest against its exact distance: the kernel's curvature shift cancels."""
    ball = pl.shapes.sphere(radius=1.0)
    body = pl.GridBody(ball, H)
    field = pl.shapes.sample(ball, spacing=H, margin=3)
    seen = LevelSets(np.array([0.04]), [field])
    scene = pl.Scene(body, integrator=pl.Newmark1(dt=0.04))
    raw = LevelSets(np.array([0.04]), [field], blurred=True)
    u = np.zeros((len(body.nodes), 3))
    shift = {}
    for name, given in (("blurred", seen), ("raw", raw)):
        r, slope, _ = LevelSetMeasure(scene, given).residuals(0, u)
        near = slope > 0.8
        shift[name] = abs(r[near].mean())
    assert shift["raw"] > 0.02 * H
    assert shift["blurred"] < 0.1 * shift["raw"]


def test_a_mesh_carries_a_field_too():
    """A tetrahedral body turned: its field's zero set is where the surface went."""
    ball = pl.shapes.sphere(radius=1.0)
    grid = pl.GridBody(ball, 0.5, subdivisions=1)
    nodes, cells = _tets_of_grid(grid)
    body = pl.TetBody((nodes, cells))
    moving = MovingField(body, spacing=0.2)
    shift = np.tile([0.5, 0.1, -0.2], (len(body.nodes), 1))
    field = moving.at(shift)
    points = body.surface.positions(body.nodes + shift)
    inner = np.abs(field.distance(points))
    assert np.median(inner) < 0.1 * 0.2


def _tets_of_grid(grid):
    """Each full cell as six tetrahedra around its diagonal."""
    paths = [(0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7)]
    cells = np.concatenate([grid.cells[:, p] for p in paths])
    corner = grid.nodes[cells]
    volume = np.linalg.det(corner[:, 1:] - corner[:, :1])
    cells[volume < 0] = cells[volume < 0][:, [1, 0, 2, 3]]
    used, index = np.unique(cells, return_inverse=True)
    return grid.nodes[used], index.reshape(cells.shape)


def test_bad_observations_are_refused(case):
    scene, _, seen = case
    with pytest.raises(pl.BadInput, match="times"):
        LevelSetMeasure(scene, LevelSets(seen.times[:-1], seen.fields))
    flat = SampledField(values=np.array([[1.0, -1.0], [1.0, 1.0]]), origin=(0.0, 0.0), spacing=1.0)
    if scene.dim == 3:
        with pytest.raises(pl.BadInput, match="2D"):
            LevelSetMeasure(scene, LevelSets(np.array([0.1]), [flat]))
