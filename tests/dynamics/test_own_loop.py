"""A loop of one's own: the same bits as `simulate`, forces and walls of the caller, snapshots."""

import gc
import re
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.march import FRESH

SOURCE = Path(pl.__file__).parent


def beam(spacing=0.015, *, tets=False, **options):
    shape = pl.shapes.box(center=(0.06, 0.0, 0.0), size=(0.12, 0.03, 0.03))
    body = pl.TetBody(shape, edge_length=spacing) if tets else pl.GridBody(shape, spacing)
    end = pl.shapes.box(center=(-0.02, 0, 0), size=(0.04 + 1e-6, 0.1, 0.1))
    return pl.Scene(
        body, pl.Material(6e4, 0.45, 1070.0), fixed=[pl.Fixed(end)],
        integrator=pl.GeneralisedAlpha(0.005), **options,
    )  # fmt: skip


def test_steps_are_those_of_simulate():
    scene = beam()
    run = pl.simulate(scene, FRESH + 6)
    sim = pl.Simulation(scene, account=True)
    for k in range(FRESH + 6):
        assert sim.number == k
        sim.step()
    assert sim.time == pytest.approx(run.times[-1])
    assert np.array_equal(sim.displacements(), run.displacements[-1])
    assert np.array_equal(sim.velocities(), run.velocities[-1])
    assert np.array_equal(sim.positions(), run.nodes(-1))
    assert np.array_equal(sim.surface(), run.surface(-1))
    assert sim.energies.scheme == run.energies.scheme[-1]
    sim.reset()
    assert sim.number == sim.time == 0.0
    assert sim.energies.kinetic == 0.0


def test_forces_of_a_step():
    """A free body of mass m, pushed by F for one step, moves with F t / m afterwards."""
    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(0.2, 0.2, 0.2)), 0.1)
    scene = pl.Scene(
        body, pl.Material(1e4, 0.3, 1000.0), gravity=(0.0, 0.0, 0.0),
        integrator=pl.ImplicitEuler(0.01),
    )  # fmt: skip
    per_node = np.zeros(body.nodes.shape)
    per_node[:, 0] = 3.0 / len(body.nodes)
    for forces in (per_node, [pl.BodyForce((3.0 / body.volume, 0.0, 0.0))]):
        sim = pl.Simulation(scene)
        sim.step(forces=forces)
        for _ in range(3):
            sim.step()
        masses = 1000.0 * np.bincount(body.cells.ravel(), body.node_volumes.ravel())
        momentum = masses @ sim.velocities()
        assert momentum == pytest.approx([3.0 * scene.dt, 0.0, 0.0], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("tets", [False, True])
def test_walls_moved_by_the_caller(tets):
    """The same motion told beforehand (Motion) and step by step; afterwards it stays there."""
    scene = beam(0.03, tets=tets)
    dt = scene.dt
    heights = 0.004 * np.minimum(np.arange(13), 8)
    told = pl.Motion(tuple(dt * np.arange(13)), tuple((0.0, h, 0.0) for h in heights))
    known = pl.Scene(
        scene.body, scene.material, integrator=scene.integrator,
        fixed=[pl.Fixed(scene.fixed[0].region, told)],
    )  # fmt: skip
    run = pl.simulate(known, 12, energy_check=False)
    sim = pl.Simulation(scene, account=True)
    for h in heights[1:9]:
        sim.step(motions={0: (0.0, h, 0.0)})
    for _ in range(4):
        sim.step()
    assert sim.displacements() == pytest.approx(run.displacements[-1], rel=1e-5, abs=1e-8)
    assert sim.energies.loads == pytest.approx(run.energies.loads[-1], rel=1e-3)


@pytest.mark.parametrize("through_a_file", [False, True])
def test_a_snapshot_comes_back_to_the_bit(through_a_file, tmp_path):
    """From a step in the middle of what the solver remembers, with pushes and moved walls."""
    scene = beam(0.0075)  # large enough for a past: 576 cells
    first, second = FRESH + 7, 9
    rng = np.random.default_rng(3)
    pushes = 1e-4 * rng.standard_normal((first + second, *scene.body.nodes.shape))

    def steps(sim, numbers):
        for k in numbers:
            move = {0: (0.0, 1e-3 * np.sin(0.2 * k), 0.0)} if k > FRESH + 2 else None
            sim.step(forces=pushes[k] if k % 3 else None, motions=move)

    sim = pl.Simulation(scene)
    steps(sim, range(first))
    snapshot = sim.snapshot()
    steps(sim, range(first, first + second))
    straight = sim.state.u.numpy().copy(), sim.state.v.numpy().copy(), sim.state.a.numpy().copy()
    other = sim
    if through_a_file:
        snapshot.save(tmp_path / "moment.npz")
        snapshot = pl.Snapshot.load(tmp_path / "moment.npz")
        other = pl.Simulation(scene)
    other.restore(snapshot)
    assert other.number == first
    steps(other, range(first, first + second))
    for was, now in zip(straight, other.state.fields(), strict=True):
        assert np.array_equal(was, now.numpy())


def test_what_does_not_fit_is_refused(tmp_path):
    sim = pl.Simulation(beam(0.03))
    with pytest.raises(pl.BadInput, match="forces must be finite numbers of shape"):
        sim.step(forces=np.zeros((3, 3)))
    with pytest.raises(pl.BadInput, match="no held region 1"):
        sim.step(motions={1: (0.0, 0.0, 0.0)})
    with pytest.raises(pl.BadInput, match="of another scene"):
        sim.restore(pl.Simulation(beam()).snapshot())
    with pytest.raises(pl.BadInput, match="there is no such file"):
        pl.Snapshot.load(tmp_path / "missing.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    with pytest.raises(pl.BadInput, match="damaged or not a snapshot"):
        pl.Snapshot.load(tmp_path / "bad.npz")
    assert sim.number == 0


def test_resumed_runs_end_with_the_same_bits():
    """A body whose solver remembers, resumed in the middle of that."""
    scene = beam(0.0075)
    whole = pl.simulate(scene, FRESH + 8)
    for half in (5, FRESH + 3):
        again = pl.simulate(scene, FRESH + 8, resume=pl.simulate(scene, half))
        assert np.array_equal(again.displacements, whole.displacements)
        assert np.array_equal(again.iterations, whole.iterations)


def test_one_loop_advances_time():
    """Whoever steps a system reads dynamics/march.py; differences of one step are no loop."""
    found = [
        p.relative_to(SOURCE).as_posix()
        for p in SOURCE.rglob("*.py")
        if re.search(r"\b(model|system)\.step\(", p.read_text(encoding="utf-8"))
    ]
    assert set(found) == {"dynamics/march.py", "particles/step_differences.py"}


@pytest.mark.parametrize("options", [{}, {"start": "equilibrium"}])
def test_a_model_goes_when_nobody_needs_it(options):
    """Without waiting for the collector: those of large bodies hold hundreds of megabytes."""
    scene = beam(**options)
    gc.disable()
    try:
        model = scene.make_model()
        state = model.initial_state()
        after, _ = model.step(state)
        model.derivatives.begin_adjoint()
        gone = ref(model)
        del model
        assert gone() is None
    finally:
        gc.enable()
