"""Shape matching: what it keeps, when it is rigid, which material it is, and what it survives."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from particle_bars import bar, cubes, tip
from pliant.core.launch import set_threads, thread_count
from pliant.particles.clusters import clusters_of


def scene(counts=(6, 2, 2), *, more=None, **numbers):
    return bar(counts, model="shape-matching", numbers=numbers, **(more or {}))


FREE = {"fixed": [], "gravity": (0.0, 0.0, 0.0), "initial_spin": (1.0, 2.0, 6.0)}


def momenta(model, state):
    x, v, m = state.u.numpy() + model.scene.body.nodes, state.v.numpy(), model.masses
    return m @ v, m @ np.cross(x, v)


@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"alpha": 0.5, "clusters": 1},
        {"alpha": 0.3, "beta": 0.8, "clusters": 5},
        {"alpha": 0.3, "beta": 0.8, "goals": "quadratic", "clusters": 5},
    ],
)
def test_a_free_body_keeps_momentum_and_angular_momentum(numbers):
    made = scene(more=FREE | {"initial_velocity": (1.0, 2.0, 3.0)}, **numbers)
    model = made.make_model()
    state = model.initial_state()
    rng = np.random.default_rng(1)
    u = rng.normal(0.0, 0.02, made.body.nodes.shape)
    state = model.restored({**model.saved(state), "u": u}, 0.0)
    first, spin = momenta(model, state)
    for _ in range(30):
        state, _ = model.step(state)
        last, turned = momenta(model, state)
        assert np.abs(last - first).max() < 1e-12 * np.linalg.norm(first)
        assert np.abs(turned - spin).max() < 1e-12 * np.linalg.norm(spin)
        first, spin = last, turned


def test_pieces_that_do_not_touch_keep_their_own_spins():
    nodes, cells = cubes((2, 1, 1), (0.4, 0.2, 0.2))
    both = np.concatenate([nodes, nodes + [3.0, 0.0, 0.0]])
    body = pl.TetBody((both, np.concatenate([cells, cells + len(nodes)])), order=1)
    made = pl.Scene(
        body, pl.Material(1e5, 0.3, 1000.0), gravity=(0.0, 0.0, 0.0), model="shape-matching",
        numbers={"alpha": 0.5, "clusters": 2},
    )  # fmt: skip
    model = made.make_model()
    v = np.zeros_like(both)
    v[: len(nodes)] = np.cross([0.0, 0.0, 3.0], nodes - [0.2, 0.1, 0.1])
    state = model.restored({**model.saved(model.initial_state()), "v": v}, 0.0)
    first, _ = model.pieces.spin(model.masses, state.u.numpy(), v)
    for _ in range(30):
        state, _ = model.step(state)
    last, _ = model.pieces.spin(model.masses, state.u.numpy(), state.v.numpy())
    assert np.abs(last - first).max() < 1e-12 * np.abs(first).max()
    assert np.abs(last[1]).max() < 1e-15
    assert np.abs(state.u.numpy()[len(nodes) :]).max() < 1e-12


def test_alpha_one_is_a_rigid_body():
    model = scene(more=FREE, alpha=1.0, clusters=1).make_model()
    X = model.scene.body.nodes
    state = model.initial_state()
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    for _ in range(20):
        state, _ = model.step(state)
    x = X + state.u.numpy()
    assert np.abs(np.linalg.norm(x[:, None] - x[None], axis=2) - apart).max() < 1e-12
    assert np.abs(state.u.numpy()).max() > 0.1


def test_alpha_is_a_time_that_steps_do_not_change():
    """The same pull at half the step: the stretch of a free body swings equally fast."""

    def period(dt):
        made = scene((3, 2, 2), more={**FREE, "initial_spin": (0.0, 0.0, 0.0), "dt": dt},
                     alpha=0.02, clusters=1)  # fmt: skip
        model = made.make_model()
        X = made.body.nodes - made.body.nodes.mean(axis=0)
        state = model.restored({**model.saved(model.initial_state()), "u": 0.05 * X}, 0.0)
        sizes = []
        for _ in range(round(1.0 / dt)):
            state, _ = model.step(state)
            sizes.append(float(np.sum(state.u.numpy() * X)))
        crossing = np.flatnonzero(np.diff(np.sign(sizes)))
        return dt * float(np.diff(crossing).mean())

    expected = np.pi / (60.0 * 0.02**0.5)  # half of 2 pi T, T = 1 / (60 sqrt(alpha))
    assert period(1.0 / 240.0) == pytest.approx(expected, rel=0.02)
    assert period(1.0 / 960.0) == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
def test_young_s_modulus_gives_the_first_frequency():
    """Of the bar with a cluster around each of its 525 nodes: 1.408 Hz by quadratic cells."""
    gentle = {"gravity": (0.0, -0.5, 0.0)}
    heights = tip(pl.simulate(scene((20, 4, 4), more=gentle), 45))
    i = int(np.argmin(heights))
    a, b, c = heights[i - 1 : i + 2]
    lowest = (i + 0.5 * (a - c) / (a - 2.0 * b + c)) / 60.0
    assert 0.5 / lowest == pytest.approx(1.408, rel=0.1)


def test_a_linear_or_quadratic_goal_is_its_own_shape():
    """What the goals can be is not pulled back, but for its rigid share and its volume."""
    made = scene(more={**FREE, "initial_spin": (0.0, 0.0, 0.0)}, alpha=1.0, beta=0.99, clusters=1,
                 goals="quadratic")  # fmt: skip
    model = made.make_model()
    X = made.body.nodes - 0.5 * made.body.nodes.max(axis=0)
    u = 0.2 * np.stack([X[:, 0] * X[:, 1], -0.5 * X[:, 0] ** 2, 0.0 * X[:, 0]], axis=1)
    u -= (model.masses @ u) / model.masses.sum()
    saved = model.saved(model.initial_state())
    state, _ = model.step(model.restored({**saved, "u": u}, 0.0))
    assert np.abs(state.u.numpy() - u).max() < 0.03 * np.abs(u).max()
    stiff = replace(made, numbers={"alpha": 1.0, "clusters": 1}).make_model()
    state, _ = stiff.step(stiff.restored({**saved, "u": u}, 0.0))
    assert np.abs(state.u.numpy()).max() < 0.5 * np.abs(u).max()


def test_clusters_overlap_and_cover():
    nodes, cells = cubes((6, 2, 2), (1.0, 0.2, 0.2))
    for count in (1, 4, 0):
        found = clusters_of(nodes, cells, count)
        assert len(found) == (count or len(nodes))
        assert (np.bincount(found.member, minlength=len(nodes)) >= 1).all()
        assert len(found.member) >= len(nodes)
    apart = np.concatenate([nodes, nodes + 5.0])
    found = clusters_of(apart, np.concatenate([cells, cells + len(nodes)]), 2)
    assert len(found) == 2
    assert len(found.member) == len(apart)


@pytest.mark.parametrize(
    "numbers",
    [{"clusters": 1, "alpha": 0.5}, {"alpha": 0.2, "beta": 0.7, "clusters": 4}, {}],
)
def test_it_survives_what_no_mesh_survives(numbers):
    """Squeezed flat, to a line, to a point, mirrored, shuffled: it comes back to its rest."""
    damped = pl.Material(1e5, 0.3, 1000.0, mass_damping=5.0)
    made = scene((3, 2, 2), more=FREE | {"initial_spin": (0.0, 0.0, 0.0), "material": damped},
                 **numbers)  # fmt: skip
    model = made.make_model()
    X = np.array(made.body.nodes)
    saved = model.saved(model.initial_state())
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    rng = np.random.default_rng(3)
    for scale in ((1.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (-1.0, 1.0, 1.0), None):
        x = X * scale if scale else rng.uniform(0.0, 1.0, X.shape)
        state = model.restored({**saved, "u": x - X}, 0.0)
        for _ in range(500):
            state, _ = model.step(state)
        x = X + state.u.numpy()
        assert np.isfinite(x).all()
        if numbers:  # with a cluster a node, what was shuffled may stay folded
            assert np.abs(np.linalg.norm(x[:, None] - x[None], axis=2) - apart).max() < 1e-6


def test_a_pressed_body_keeps_its_dent_and_its_volume():
    """Pressed to 70 % of its height by a plate, then let go: most of the dent is left."""
    body = pl.TetBody(cubes((4, 4, 4), (0.4, 0.4, 0.4)), order=1)
    plate = pl.Fixed(pl.shapes.box(center=(0.2, 0.4, 0.2), size=(1.0, 1e-3, 1.0)),
                     pl.Motion((0.0, 0.2, 0.6, 0.61), ((0.0, 0.0, 0.0), (0.0, -0.12, 0.0),
                               (0.0, -0.12, 0.0), (0.0, -0.12, 0.0))), axes="y")  # fmt: skip
    floor = pl.Fixed(pl.shapes.box(center=(0.2, 0.0, 0.2), size=(1.0, 1e-3, 1.0)), axes="y")
    numbers = {"alpha": 0.5, "beta": 0.3, "clusters": 1, "yield_strain": 0.05, "creep": 20.0,
               "limit": 0.6}  # fmt: skip
    pressed = pl.Scene(
        body, pl.Material(1e5, 0.3, 1000.0, mass_damping=5.0), gravity=(0.0, 0.0, 0.0),
        fixed=[plate, floor], model="shape-matching", numbers=numbers,
    )  # fmt: skip
    model = pressed.make_model()
    state = model.initial_state()
    for _ in range(60):
        state, _ = model.step(state)
    free = replace(pressed, fixed=[]).make_model()
    state = free.restored(model.saved(state), 0.0)
    for _ in range(300):
        state, _ = free.step(state)
    x = body.nodes + state.u.numpy()
    assert 0.27 < np.ptp(x[:, 1]) < 0.34
    corner = x[body.cells]
    volume = np.linalg.det(corner[:, 1:] - corner[:, :1]).sum() / 6.0
    assert volume == pytest.approx(body.volume, rel=0.01)


def test_a_plane_body_turns_in_its_plane():
    strip = pl.TetBody(pl.shapes.box(size=(1.0, 0.2)), 0.1, order=1)
    made = pl.Scene(
        strip, pl.Material(1e5, 0.3, 1000.0), gravity=(0.0, 0.0), initial_spin=(0.0, 0.0, 1.0),
        model="shape-matching", numbers={"alpha": 0.5, "beta": 0.5, "clusters": 3},
    )  # fmt: skip
    model = made.make_model()
    state = model.initial_state()
    for _ in range(50):
        state, _ = model.step(state)
    u = state.u.numpy()
    assert (u[:, 2] == 0.0).all()
    x = strip.nodes + u[:, :2]
    assert np.ptp(np.linalg.norm(x, axis=1)) == pytest.approx(
        np.ptp(np.linalg.norm(strip.nodes, axis=1)), rel=0.02
    )


def test_bits_do_not_depend_on_threads():
    body = pl.TetBody(cubes((12, 12, 12), (1.0, 1.0, 1.0)), order=1)
    made = pl.Scene(
        body, pl.Material(1e4, 0.3, 100.0), obstacles=[pl.Plane(offset=-0.01)],
        model="shape-matching", numbers={"alpha": 0.4, "clusters": 300},
    )  # fmt: skip
    before, found = thread_count(), []
    try:
        for count in (1, 2):
            set_threads(count)
            found.append(pl.simulate(made, 6).displacements)
    finally:
        set_threads(before)
    assert (found[0] == found[1]).all()


@pytest.mark.slow
def test_ten_thousand_steps_of_abuse_leave_no_trace():
    """Every thirtieth step it is flattened, mirrored, pressed or turned over; then let be."""
    damped = pl.Material(1e5, 0.3, 1000.0, mass_damping=20.0)
    for model, numbers in (
        ("shape-matching", {"alpha": 0.5, "beta": 0.5, "clusters": 1}),
        ("position-based", {"substeps": 2}),
    ):
        made = bar((2, 1, 1), model=model, numbers=numbers, material=damped,
                   **(FREE | {"initial_spin": (0.0, 0.0, 0.0)}))  # fmt: skip
        stepper, X = made.make_model(), np.array(made.body.nodes)
        state = stepper.initial_state()
        ways = ([1.0, 0.0, 1.0], [-1.0, 1.0, 1.0], [1.0, 1.0, 0.01], [-1.0, -1.0, -1.0])
        for i in range(10_000):
            if i < 9000 and i % 30 == 0:
                u = X * ways[(i // 30) % 4] - X
                state = stepper.restored({**stepper.saved(state), "u": u}, 0.0)
            state, _ = stepper.step(state)
            assert np.isfinite(state.u.numpy()).all()
        x = X + state.u.numpy()
        apart = [np.linalg.norm(p[:, None] - p[None], axis=2) for p in (x, X)]
        assert np.abs(apart[0] - apart[1]).max() < 1e-6
