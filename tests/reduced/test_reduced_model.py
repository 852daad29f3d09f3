"""The projected balance: equal to the full body's where the span is everything, and its account."""

import numpy as np
import pytest

import pliant as pl
from pliant.core.launch import thread_count
from pliant.dynamics.march import march
from pliant.dynamics.model import State
from pliant.reduced.modal_basis import snapshot_span
from pliant.reduced.reduced_model import ReducedModel
from pliant.reduced.reduction import Reduction, all_points
from pliant.reduced.spans import Piece, ScalarSpan, VectorSpan
from pliant.reduced.supports_of_span import nodal_supports

WALL = [pl.Fixed(pl.shapes.box(center=(-0.15, 0, 0), size=(1e-3, 1, 1)))]
SOFT = pl.Material(youngs_modulus=2e4, poisson_ratio=0.3, density=1000.0, mass_damping=0.2,
                   stiffness_damping=0.003)  # fmt: skip


@pytest.fixture(scope="module")
def bar():
    return pl.TetBody(pl.shapes.box(size=(0.3, 0.1, 0.1)), edge_length=0.1, order=1)


@pytest.fixture(scope="module")
def grid():
    return pl.GridBody(pl.shapes.box(size=(0.3, 0.1, 0.1)), 0.05)


def everything(scene):
    """All displacements that the walls allow."""
    boundary, _ = nodal_supports(scene)
    n, d = scene.body.nodes.shape
    free = boundary.free[:, :d].reshape(-1) > 0.0
    return VectorSpan(np.eye(n * d)[:, free].reshape(n, d, -1))


@pytest.mark.parametrize(
    "scheme",
    [pl.GeneralisedAlpha(0.01), pl.ImplicitEuler(0.01), pl.Newmark1(0.01, 0.6), pl.Newmark2(0.01),
     pl.HHT(0.01)],
    ids=lambda s: s.name,
)  # fmt: skip
def test_the_span_of_everything_is_the_full_body(bar, scheme):
    scene = pl.Scene(bar, SOFT, fixed=WALL, law="neo-hookean", dilatation="pointwise",
                     integrator=scheme, tolerance=1e-10)  # fmt: skip
    span = everything(scene)
    reduced = ReducedModel(scene, Reduction(span, all_points(scene, span)))
    mine, full = pl.simulate(scene, 8, system=reduced), pl.simulate(scene, 8)
    size = np.abs(full.displacements).max()
    assert size > 0.02
    assert mine.displacements == pytest.approx(full.displacements, abs=1e-7 * size)
    for name in ("kinetic", "elastic", "gravity", "damping", "loads"):
        want = getattr(full.energies, name)
        assert getattr(mine.energies, name) == pytest.approx(
            want, abs=1e-6 * full.energies.kinetic.max()
        )


def test_contact_and_friction_are_the_full_bodys(bar):
    scene = pl.Scene(bar, SOFT, law="neo-hookean", dilatation="pointwise", tolerance=1e-10,
                     obstacles=[pl.Plane(offset=-0.05)], initial_velocity=(0.3, 0.0, 0.0),
                     contact=pl.ContactLaw(friction=0.3))  # fmt: skip
    span = everything(scene)
    reduced = ReducedModel(scene, Reduction(span, all_points(scene, span)))
    mine, full = pl.simulate(scene, 8, system=reduced), pl.simulate(scene, 8)
    size = np.abs(full.displacements).max()
    assert mine.displacements == pytest.approx(full.displacements, abs=1e-6 * size)
    assert mine.energies.contact == pytest.approx(full.energies.contact, rel=1e-5)
    assert np.ptp(full.energies.rubbing) > 0.0
    assert mine.energies.rubbing == pytest.approx(full.energies.rubbing, rel=1e-4, abs=1e-9)


def test_scalar_and_vector_spans_are_the_same_map():
    rng = np.random.default_rng(3)
    pieces = [Piece(0, 6, np.array([0, 2]), rng.normal(size=(6, 2))),
              Piece(6, 12, np.array([1, 2, 3]), rng.normal(size=(6, 3)))]  # fmt: skip
    own = ScalarSpan(pieces, 4, 3)
    wide = np.einsum("ms,ij->misj", own.dense(), np.eye(3)).reshape(12, 3, 12)
    other = VectorSpan(wide)
    q, field, blocks = (
        rng.normal(size=12),
        rng.normal(size=(12, 3)),
        rng.normal(size=(4, 3, 3, 3, 3)),
    )
    blocks += blocks.transpose(0, 3, 4, 1, 2)
    assert own.apply(q) == pytest.approx(other.apply(q))
    assert own.pull(field) == pytest.approx(other.pull(field))
    assert own.gram(blocks) == pytest.approx(other.gram(blocks))
    assert own.weighted(np.eye(12)) == pytest.approx(other.weighted(np.eye(12)))
    assert own.columns(np.array([3, 8])) == pytest.approx(other.columns(np.array([3, 8])))
    assert float(own.pull(field) @ q) == pytest.approx(float(np.sum(field * own.apply(q))))


@pytest.mark.parametrize(
    "scheme", [pl.GeneralisedAlpha(0.01), pl.Newmark2(0.01)], ids=lambda s: s.name
)
def test_undamped_reduced_runs_keep_their_energy(bar, scheme):
    free = pl.Material(youngs_modulus=2e5, poisson_ratio=0.3, density=1000.0)
    scene = pl.Scene(bar, free, fixed=WALL, model="modal", numbers={"modes": 4, "cubature": 0.0},
                     integrator=scheme, law="st-venant-kirchhoff")  # fmt: skip
    run = pl.simulate(scene, 60)
    assert np.ptp(run.energies.kinetic) > 0.0
    exchanged = np.abs(run.energies.gravity).max()
    assert np.abs(run.energies.scheme).max() < 2e-2 * exchanged


@pytest.mark.parametrize("numbers", [{"modes": 3}, {"snapshots": 6}])
def test_runs_go_on_with_the_same_bits(grid, numbers):
    scene = pl.Scene(grid, SOFT, fixed=WALL, model="modal", numbers=numbers | {"cubature": 0.0})
    whole = pl.simulate(scene, 70)
    resumed = pl.simulate(scene, 70, resume=pl.simulate(scene, 66))
    assert (whole.displacements == resumed.displacements).all()


def test_modes_alone_swing_with_their_frequencies(grid):
    """A small swing has the mode's period (two bend a square beam alike, one along gravity)."""
    still = pl.Material(youngs_modulus=2e4, poisson_ratio=0.3, density=1000.0)
    base = {"fixed": WALL, "dilatation": "pointwise", "law": "neo-hookean"}
    f = pl.modes(pl.Scene(grid, still, **base), 1).frequencies[0]
    scene = pl.Scene(grid, still, model="modal", gravity=(0.0, -1e-4, 0.0), **base,
                     integrator=pl.GeneralisedAlpha(0.01 / f),
                     numbers={"modes": 2, "order": 0, "cubature": 0.0})  # fmt: skip
    run = pl.simulate(scene, 400)
    tip = run.displacements[:, np.argmax(grid.nodes[:, 0]), 1]
    turns = np.flatnonzero((tip[1:-1] > tip[:-2]) & (tip[1:-1] >= tip[2:])) + 1
    period = np.diff(run.times[turns]).mean()
    assert period * f == pytest.approx(1.0, abs=0.01)


def test_the_carrier_is_linear_and_its_transpose_is_exact(grid):
    scene = pl.Scene(grid, SOFT, fixed=WALL, model="modal", numbers={"modes": 3, "cubature": 0.0})
    model = scene.make_model()
    rng = np.random.default_rng(0)
    change = State({n: rng.normal(size=model.size) for n in model.initial_state().arrays})
    bar = tuple(rng.normal(size=(len(grid.nodes), 3)) for _ in range(2))
    u, v = model.carrier.jvp(change, change)
    back = model.carrier.vjp(change, bar)
    there = float(np.sum(u * bar[0]) + np.sum(v * bar[1]))
    here = sum(float(back.arrays[n] @ x) for n, x in change.arrays.items())
    assert here == pytest.approx(there, rel=1e-12)


def test_a_free_body_turns_without_strain(grid):
    """A rigid motion is in the span, however large, and a spinning body keeps its spin."""
    scene = pl.Scene(grid, SOFT, model="modal", gravity=(0, 0, 0), initial_spin=(0, 0, 2.0),
                     numbers={"modes": 4, "cubature": 0.0})  # fmt: skip
    model = scene.make_model()
    X, w = grid.nodes - grid.nodes.mean(axis=0), 1.1
    R = np.array([[np.cos(w), -np.sin(w), 0], [np.sin(w), np.cos(w), 0], [0, 0, 1]])
    u = X @ (R.T - np.eye(3)) + np.array([1.0, -2.0, 0.5])
    q = np.linalg.solve(model.mass.matrix, model.mass.momentum(u))
    assert np.abs(model.span.apply(q) - u).max() < 1e-10
    assert model.forces.energy(q) < 1e-18 * 2e4
    still = pl.Scene(grid, pl.Material(youngs_modulus=2e6, density=1000.0), model="modal",
                     gravity=(0, 0, 0), initial_spin=(0, 0, 2.0), integrator=pl.Newmark2(0.01),
                     numbers={"modes": 4, "cubature": 0.0})  # fmt: skip
    run = pl.simulate(still, 100)
    turned = run.displacements[-1] + grid.nodes
    angle = np.arctan2(*(turned[np.argmax(X[:, 0])] - turned.mean(axis=0))[[1, 0]])
    first = np.arctan2(*X[np.argmax(X[:, 0])][[1, 0]])
    assert (angle - first) % (2 * np.pi) == pytest.approx(2.0, abs=2e-2)


def test_modal_derivatives_and_snapshots_bring_large_motions(grid):
    base = {"fixed": WALL, "law": "neo-hookean"}
    soft = pl.Material(youngs_modulus=3e4, poisson_ratio=0.3, density=1000.0, mass_damping=0.5)
    full = pl.simulate(pl.Scene(grid, soft, **base), 40)

    def error(scene, system=None):
        run = pl.simulate(scene, 40, system=system)
        off = np.square(run.displacements - full.displacements).sum()
        return np.sqrt(off / np.square(full.displacements).sum())

    found = [
        error(pl.Scene(grid, soft, model="modal", numbers={"modes": 5, "order": k, "cubature": 0.0},
                       **base)) for k in range(3)
    ]  # fmt: skip
    assert found[0] > 3.0 * found[1] > 3.0 * found[2]
    assert found[1] < 0.1
    scene = pl.Scene(grid, soft, **base)
    span = snapshot_span(scene, full.displacements[1:], 8)
    assert error(scene, ReducedModel(scene, Reduction(span, all_points(scene, span)))) < 0.05


def test_a_march_of_states_is_what_simulate_makes(grid):
    scene = pl.Scene(grid, SOFT, fixed=WALL, model="modal", numbers={"modes": 3, "cubature": 0.0})
    model = scene.make_model()
    states = [step.after for step in march(model, model.initial_state(), until=3)]
    run = pl.simulate(scene, 3)
    assert (model.carrier.apply(states[-1])[0] == run.displacements[-1]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numbers": {"mode": 3}}, "did you mean 'modes'"),
        ({"integrator": pl.CentralDifferences(0.01)}, "implicit integrator"),
        ({"fixed": [pl.Fixed(WALL[0].region, displacement=(0.0, 0.1, 0.0))]}, "held where it was"),
        ({"start": "equilibrium"}, "model = \"corotated\""),
        ({"material": pl.Material(branches=[pl.Branch(100.0, 0.1)])}, "no viscoelastic branches"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(grid, change, words):
    with pytest.raises(pl.BadInput, match=words):
        pl.simulate(pl.Scene(grid, model="modal", **({"fixed": WALL} | change)), 1)


def test_the_corotated_stress_by_a_polar_decomposition_is_that_of_the_stretches():
    from pliant.fem.laws import find_law
    from pliant.reduced.point_law import PointLaw

    rng = np.random.default_rng(2)
    law = find_law("corotated").from_moduli(1e3, 0.3)
    n = 50
    F = np.eye(3) + 0.4 * rng.normal(size=(n, 3, 3))
    points = PointLaw(law, law.table(n), np.ones(n), 3)
    for _ in range(3):  # the tangent comes from the stretches: differences of the stress meet it
        dF = rng.normal(size=(n, 3, 3))
        up, down = (points.stress(F + s * 1e-6 * dF)[1].copy() for s in (1.0, -1.0))
        slope = np.einsum("pijkl,pkl->pij", points.tangent(F, project=False), dF)
        well = np.linalg.det(F) > 0.1
        assert ((up - down) / 2e-6)[well] == pytest.approx(slope[well], rel=1e-4, abs=1e-1)
    stretch = np.diag([1.2, 0.9, 1.05])[None]
    one = PointLaw(law, law.table(1), np.ones(1), 3)
    psi, P = one.stress(stretch)
    lam, mu = law.lame()
    t = 0.15
    assert psi[0] == pytest.approx(mu * (0.04 + 0.01 + 0.0025) + 0.5 * lam * t * t)
    assert np.diag(P[0]) == pytest.approx(2 * mu * np.array([0.2, -0.1, 0.05]) + lam * t)


@pytest.mark.parametrize("name", ["corotated", "neo-hookean", "fung"])
def test_the_kernels_of_points_compile_for_cuda(name, tmp_path):
    import warp as wp

    from pliant.fem.laws import LAWS
    from pliant.reduced.point_law import point_kernels

    module = point_kernels(LAWS[name]).rows.module
    wp.compile_aot_module(module, device=None, arch=75, module_dir=str(tmp_path), use_ptx=True)
    made = [p for p in tmp_path.iterdir() if p.suffix in (".cubin", ".ptx")]
    assert made
    assert all(p.stat().st_size > 0 for p in made)


LAWS_ALIKE = ["fung", "ogden", "yeoh", "mooney-rivlin", "arruda-boyce", "stable-neo-hookean"]


@pytest.mark.parametrize("law", LAWS_ALIKE)
def test_every_law_steps_as_the_full_body_does(bar, law):
    from pliant.fem.laws import find_law

    try:
        find_law(law).from_moduli(2e4, 0.3)
    except pl.BadInput:
        pytest.skip("it does not follow from a modulus and a ratio")
    scene = pl.Scene(bar, SOFT, fixed=WALL, law=law, dilatation="pointwise", tolerance=1e-10)
    span = everything(scene)
    mine = pl.simulate(
        scene, 4, system=ReducedModel(scene, Reduction(span, all_points(scene, span)))
    )
    full = pl.simulate(scene, 4)
    size = np.abs(full.displacements).max()
    assert mine.displacements == pytest.approx(full.displacements, abs=1e-6 * size)


def test_two_threads_give_the_same_bits(grid):
    scene = pl.Scene(grid, SOFT, fixed=WALL, model="modal", numbers={"modes": 4, "cubature": 0.0})
    before, runs = thread_count(), []
    for count in (1, 2):
        pl.set_threads(count)
        runs.append(pl.simulate(scene, 12).displacements)
    pl.set_threads(before)
    assert (runs[0] == runs[1]).all()


def test_several_bodies_are_full_ones(grid):
    scene = pl.Scene(
        parts=[
            pl.Part("a", grid, SOFT, model="modal"),
            pl.Part("b", grid, SOFT, position=(0, 0.2, 0)),
        ]
    )
    with pytest.raises(pl.BadInput, match="cannot touch other parts"):
        pl.simulate(scene, 1)
