"""Quadratic domains: what their span holds, how its error falls, and their trained points."""

import numpy as np
import pytest

import pliant as pl
from pliant.reduced.cubature import non_negative
from pliant.reduced.domain_weights import elastic_weights, harmonic_weights, seed_balls
from pliant.reduced.domains import polynomials, quadratic_span
from pliant.reduced.prepare import prepared
from pliant.reduced.reduced_model import ReducedModel
from pliant.reduced.reduction import Domains, Reduction, all_points
from pliant.reduced.segments import segmented

WALL = [pl.Fixed(pl.shapes.box(center=(-0.5, 0, 0), size=(1e-3, 1, 1)))]
SOFT = pl.Material(youngs_modulus=1.6e6, poisson_ratio=0.3, density=1000.0, mass_damping=2.0)


@pytest.fixture(scope="module")
def beam():
    return pl.TetBody(pl.shapes.box(size=(1.0, 0.15, 0.15)), edge_length=0.075, order=1)


@pytest.fixture(scope="module")
def swing(beam):
    return pl.simulate(_scene(beam), 25)


def _scene(body, **other):
    given = {"fixed": WALL, "law": "neo-hookean", "integrator": pl.GeneralisedAlpha(0.02)}
    return pl.Scene(body, SOFT, **(given | other))


def _reduced(body, n, weights="elastic", cubature=0.0, **other):
    numbers = {"domains": n, "weights": weights, "cubature": cubature}
    return _scene(body, model="reduced", numbers=numbers, **other)


def _error(run, full):
    off = np.square(run.displacements - full.displacements).sum()
    return float(np.sqrt(off / np.square(full.displacements).sum()))


def test_the_error_falls_with_the_domains(beam, swing):
    assert swing.displacements[:, :, 1].min() < -0.4
    runs = [pl.simulate(_reduced(beam, n), 25) for n in (1, 2, 3, 5)]
    found = [_error(run, swing) for run in runs]
    assert found[0] > 3.0 * found[1]
    assert found[1] > 1.5 * found[2] > 2.0 * found[3]
    assert found[3] < 0.02
    for n in (1, 2, 3, 5):
        harmonic = _error(pl.simulate(_reduced(beam, n, "harmonic"), 25), swing)
        assert found[(1, 2, 3, 5).index(n)] < 0.5 * harmonic


def test_a_beam_whose_modulus_falls_along_it(beam):
    """Young's modulus 10 to 1 from the wall to the middle: elastic weights know, others do not."""
    x = beam.nodes[beam.cells].mean(axis=1)[:, 0] + 0.5
    E = 8e5 * np.interp(x, [0.0, 0.5, 1.0], [10.0, 1.0, 1.0])
    soft = pl.Material(youngs_modulus=E, poisson_ratio=0.3, density=1000.0, mass_damping=2.0)
    full = pl.simulate(pl.Scene(beam, soft, fixed=WALL, law="neo-hookean"), 40)

    def error(kind):
        numbers = {"domains": 2, "weights": kind, "cubature": 0.0}
        scene = pl.Scene(
            beam, soft, fixed=WALL, law="neo-hookean", model="reduced", numbers=numbers
        )
        return _error(pl.simulate(scene, 40), full)

    assert np.abs(full.displacements).max() > 0.1
    assert 2.0 * error("elastic") < error("harmonic")


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["elastic", "harmonic"])
def test_a_rigid_motion_is_in_the_span_of_a_free_body(beam, n, kind):
    scene = _reduced(beam, n, kind, fixed=())
    model = ReducedModel(scene, prepared(scene))
    X, w = beam.nodes, 2.0
    R = np.array([[np.cos(w), 0, np.sin(w)], [0, 1, 0], [-np.sin(w), 0, np.cos(w)]])
    u = X @ (R.T - np.eye(3)) + np.array([1.0, -2.0, 0.5])
    q = np.linalg.solve(model.mass.matrix, model.mass.momentum(u))
    assert np.abs(model.span.apply(q) - u).max() < 1e-10
    assert model.size <= 30 * n + 12


def test_weights_are_one_at_their_own_seed_and_zero_at_others(beam):
    for n in (2, 3):
        scene = _reduced(beam, n)
        segments = segmented(beam, n)
        at = seed_balls(scene, segments).T @ elastic_weights(scene, segments).weights
        assert at == pytest.approx(np.eye(n), abs=1e-7)
        held = beam.nodes[:, 0] < -0.5 + 1e-9
        assert np.abs(elastic_weights(scene, segments).weights[held]).max() < 1e-12
        assert np.abs(harmonic_weights(scene, segments).weights[held]).max() < 1e-12


def test_the_direction_of_a_flat_beam_is_across_it():
    body = pl.TetBody(pl.shapes.box(size=(1.0, 0.1, 0.3)), edge_length=0.1, order=1)
    fading = elastic_weights(_reduced(body, 3), segmented(body, 3))
    assert fading.direction is not None
    assert np.abs(fading.direction[1]) > 0.9


def test_slices_of_a_beam_are_its_segments(beam):
    segments = segmented(beam, 4)
    assert np.sort(segments.seeds[:, 0]) == pytest.approx([-0.375, -0.125, 0.125, 0.375], abs=0.02)
    volumes = np.bincount(segments.of, beam.cell_volumes)
    assert volumes == pytest.approx(np.full(4, beam.volume / 4), rel=0.15)
    order = np.argsort(segments.seeds[:, 0])
    chain = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    assert (segments.joined[np.ix_(order, order)] == chain).all()


def test_quadratic_motions_bend_without_shear():
    """Pure bending, (-k x y, k x^2 / 2, 0): one quadratic domain holds it, three affine and five
    rigid ones do not.
    """
    body = pl.TetBody(pl.shapes.box(size=(1.0, 0.15, 0.15)), edge_length=0.075, order=1)
    scene = _reduced(body, 1, fixed=())
    x, y = body.nodes[:, 0], body.nodes[:, 1]
    u = 0.3 * np.stack([-x * y, 0.5 * x**2, 0 * x], axis=1)

    def left(n, degree):
        segments = segmented(body, n)
        own = Domains(segments.seeds, segments.of, elastic_weights(scene, segments).weights)
        span = quadratic_span(scene, own, degree=degree)
        B = span.dense()
        return np.abs(B @ np.linalg.lstsq(B, u, rcond=None)[0] - u).max()

    assert left(1, 2) < 1e-12
    assert left(3, 1) > 1e-4
    assert left(5, 0) > 1e-4


def test_polynomials_are_ten_in_space_and_six_in_the_plane():
    rng = np.random.default_rng(0)
    assert polynomials(rng.normal(size=(40, 3))).shape == (40, 10)
    assert polynomials(rng.normal(size=(40, 2))).shape == (40, 6)
    assert np.linalg.matrix_rank(polynomials(rng.normal(size=(40, 3)))) == 10


def test_trained_points_do_what_all_of_them_do(beam, swing):
    few = prepared(_reduced(beam, 2, cubature=0.03))
    assert few.report["training_error"] <= 0.03
    assert len(few.points) < 0.3 * len(prepared(_reduced(beam, 2)).points)
    assert (few.points.weights > 0.0).all()
    all_of_them = _error(pl.simulate(_reduced(beam, 2), 25), swing)
    trained = _error(pl.simulate(_reduced(beam, 2, cubature=0.03), 25), swing)
    assert trained == pytest.approx(all_of_them, abs=0.02)


def test_training_is_the_same_every_time(beam):
    from pliant.reduced import prepare

    scene = _reduced(beam, 1, cubature=0.05)
    first = prepared(scene)
    prepare._kept.clear()
    again = prepared(scene)
    assert (first.points.weights == again.points.weights).all()
    assert (first.points.cells == again.points.cells).all()


def test_non_negative_least_squares_is_the_minimum():
    rng = np.random.default_rng(5)
    for _ in range(20):
        A, b = rng.normal(size=(30, 12)), rng.normal(size=30)
        x = non_negative(A.T @ A, A.T @ b, np.zeros(12))
        gain = A.T @ (b - A @ x)
        assert (x >= 0.0).all()
        assert np.abs(gain[x > 0.0]).max(initial=0.0) < 1e-7
        assert gain.max() < 1e-7


@pytest.mark.parametrize("kind", ["grid", "plane", "plane grid", "nearly incompressible"])
def test_every_kind_of_body(kind):
    """The same swing on a grid cut at its wall, in the plane, and at Poisson's ratio 0.499."""
    shape, far = pl.shapes.box(size=(0.6, 0.1, 0.1)), (-0.3, 0, 0)
    if "plane" in kind:
        shape, far = pl.shapes.box(size=(0.6, 0.1)), (-0.3, 0)
    if kind in ("tets", "plane"):
        body = pl.TetBody(shape, edge_length=0.025)
    else:
        body = pl.GridBody(shape, 0.027)
    ratio = 0.499 if kind == "nearly incompressible" else 0.3
    material = pl.Material(
        youngs_modulus=3e5, poisson_ratio=ratio, density=1000.0, mass_damping=1.0
    )
    wall = [pl.Fixed(pl.shapes.box(center=far, size=(1e-3, *(1.0,) * (len(far) - 1))))]
    gravity = (0.0, -9.81, 0.0)[: len(far)]
    base = {"material": material, "fixed": wall, "gravity": gravity}
    full = pl.simulate(pl.Scene(body, **base), 25)
    run = pl.simulate(pl.Scene(body, model="reduced", numbers={"domains": 3}, **base), 25)
    assert np.abs(full.displacements).max() > 0.04
    assert _error(run, full) < (0.15 if ratio == 0.499 else 0.08)


def test_contact_lifts_a_falling_body():
    body = pl.GridBody(pl.shapes.sphere(radius=0.1), 0.025)
    base = {"material": pl.Material(youngs_modulus=5e4, density=1000.0, mass_damping=1.0),
            "obstacles": [pl.Plane(offset=-0.15)],
            "integrator": pl.GeneralisedAlpha(0.004)}  # fmt: skip
    full = pl.simulate(pl.Scene(body, **base), 60)
    run = pl.simulate(pl.Scene(body, model="reduced", numbers={"domains": 3}, **base), 60)
    centre = run.displacements[:, :, 1].mean(axis=1)
    assert full.energies.contact.max() > 0.0
    assert centre == pytest.approx(full.displacements[:, :, 1].mean(axis=1), abs=5e-3)


def test_reductions_with_all_points_are_projections(beam):
    scene = _reduced(beam, 2)
    span = prepared(scene).span
    model = ReducedModel(scene, Reduction(span, all_points(scene, span)))
    q = 1e-2 * np.random.default_rng(1).normal(size=model.size)
    d = np.random.default_rng(2).normal(size=model.size)
    slopes = [
        (model.forces.energy(q + e * d) - model.forces.energy(q - e * d)) / (2.0 * e)
        for e in (1e-5,)
    ]
    assert slopes[0] == pytest.approx(float(model.forces.force(q) @ d), rel=1e-6)
    turned = (model.forces.force(q + 1e-6 * d) - model.forces.force(q - 1e-6 * d)) / 2e-6
    assert model.forces.stiffness(q) @ d == pytest.approx(
        turned, rel=1e-5, abs=1e-6 * np.abs(turned).max()
    )


@pytest.mark.parametrize("law", [None, "stable-neo-hookean"])
def test_a_body_collapsed_to_a_disk_returns_to_rest(law):
    """Seed 004, figure 3.17: every point in one plane, let go; such laws unfold it."""
    from pliant.dynamics.march import march
    from pliant.reduced.reduced_model import Q

    body = pl.GridBody(pl.shapes.sphere(radius=0.1), 0.025)
    scene = pl.Scene(
        body, pl.Material(1e4, 0.3, 1000.0, mass_damping=15.0, stiffness_damping=0.01), law=law,
        gravity=(0, 0, 0), integrator=pl.ImplicitEuler(0.005), model="reduced",
        numbers={"domains": 2, "cubature": 0.03},
    )  # fmt: skip
    model = scene.make_model()
    flat = -body.nodes * np.array([0.0, 0.999, 0.0])
    q = np.linalg.solve(model.mass.matrix, model.mass.momentum(flat))
    state = model.initial_state()
    state = type(state)({**state.arrays, Q: q}, 0.0)
    assert np.abs(model.carrier.apply(state)[0] - flat).max() < 1e-9
    for step in march(model, state, until=300):
        state = step.after
    u = model.carrier.apply(state)[0]
    shape = body.nodes + u - (body.nodes + u).mean(axis=0)
    assert model.forces.energy(state.arrays[Q]) < 1e-3 * model.forces.energy(q)
    spread = np.sort(np.linalg.eigvalsh(shape.T @ shape))
    rest = body.nodes - body.nodes.mean(axis=0)
    assert spread == pytest.approx(np.sort(np.linalg.eigvalsh(rest.T @ rest)), rel=0.02)


def test_a_fit_begun_on_a_reduced_body_ends_on_the_full_one():
    body = pl.GridBody(pl.shapes.box(size=(0.4, 0.1, 0.1)), 0.04)
    wall = [pl.Fixed(pl.shapes.box(center=(-0.2, 0, 0), size=(1e-3, 1, 1)))]
    scene = pl.Scene(body, pl.Material(2e5, 0.3, 1000.0, mass_damping=1.0), fixed=wall)
    run = pl.simulate(scene, 12)
    seen = pl.observe(
        run, cameras=pl.ring_of_cameras(scene, 2, width=48, height=36), noise=1e-4, seed=1
    )
    start = {"youngs_modulus": 2.6e5}
    given = {"discretisation": False, "coarse_to_fine": False}
    plain = pl.reconstruct(scene, seen, start, **given)
    both = pl.reconstruct(
        scene, seen, start, model="reduced", numbers={"domains": 2}, **given
    )  # fmt: skip
    name = "youngs_modulus"
    assert abs(both.values[name] - plain.values[name]) < 0.3 * plain.sigma[name]
    assert both.sigma[name] == pytest.approx(plain.sigma[name], rel=0.05)
    assert both.start == plain.start
    assert "reduced" in both.advice[0]
    assert {step.stage for step in both.history} >= {"reduced"}
    with pytest.raises(pl.BadInput, match="model must be one of"):
        pl.reconstruct(scene, seen, start, model="smaller")
