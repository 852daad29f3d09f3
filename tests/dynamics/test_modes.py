"""Natural modes: rigid motions of free bodies, unit modal mass, and agreement with a run in
time."""

import numpy as np
import pytest

import pliant as pl
from frozen_frames import frozen_model


@pytest.mark.parametrize(("dim", "rigid"), [(2, 3), (3, 6)])
@pytest.mark.parametrize("kind", ["cut", "simplices"])
def test_free_body_starts_with_its_rigid_motions(kind, dim, rigid):
    size = (1.0, 0.6, 0.5)[:dim]
    shape = pl.shapes.box(center=(0.02, 0.01, 0.03)[:dim], size=size)
    body = pl.GridBody(shape, 0.17) if kind == "cut" else pl.TetBody(shape, edge_length=0.25)
    scene = pl.Scene(body, pl.Material(2e3, 0.3, 1.0))
    found = pl.modes(scene, rigid + 2)
    scale = found.frequencies[rigid]
    assert scale > 1.0
    assert found.frequencies[:rigid].max() < 1e-4 * scale
    mass = frozen_model(scene).inertia.mass.to_scipy()
    gram = np.array([[np.sum(p * (mass @ q)) for q in found.shapes] for p in found.shapes])
    assert gram == pytest.approx(np.eye(rigid + 2), abs=1e-6)


@pytest.mark.parametrize("ratio", [0.3, 0.49, 0.499])
@pytest.mark.parametrize("held", [True, False])
def test_iterated_modes_are_the_direct_ones(held, ratio):
    """To 1e-6; the six rigid motions of a free body are known beforehand, so exactly zero."""
    shape = pl.shapes.box(center=(0.02, 0.01, 0.03), size=(1.0, 0.6, 0.5))
    wall = pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=-0.4))
    body = pl.GridBody(shape, 0.11)
    scene = pl.Scene(body, pl.Material(2e3, ratio, 1.0), fixed=[wall] * held)
    count = 4 if held else 10
    direct = pl.modes(scene, count, method="direct").frequencies
    told = []
    found = pl.modes(scene, count, method="iterated", progress=lambda *now: told.append(now))
    assert told[-1][:2] == (4, 4)
    assert told[-1][2] < 1e-3
    assert found.frequencies[-4:] == pytest.approx(direct[-4:], rel=1e-6)
    assert (found.frequencies[:-4] == 0.0).all()
    mass = frozen_model(scene).inertia.mass.to_scipy()
    gram = np.array([[np.sum(p * (mass @ q)) for q in found.shapes] for p in found.shapes])
    assert gram == pytest.approx(np.eye(count), abs=1e-8)
    again = pl.modes(scene, count, method="iterated")
    assert np.array_equal(again.shapes, found.shapes)


def test_every_loose_piece_has_its_rigid_motions():
    balls = pl.shapes.sphere(radius=0.5) | pl.shapes.sphere(center=(2.0, 0.0, 0.0), radius=0.4)
    scene = pl.Scene(pl.GridBody(balls, 0.15), pl.Material(2e3, 0.3, 1.0))
    direct = pl.modes(scene, 14, method="direct").frequencies
    found = pl.modes(scene, 14, method="iterated").frequencies
    assert (found[:12] == 0.0).all()
    assert found[12:] == pytest.approx(direct[12:], rel=1e-6)
    assert (pl.modes(scene, 5, method="iterated").frequencies == 0.0).all()


def test_large_bodies_are_iterated():
    """A free cube, Poisson's ratio 0.3: its lowest modes come in pairs and triples by symmetry."""
    body = pl.GridBody(pl.shapes.box(size=(1.0, 1.0, 1.0)), 0.08)
    assert len(body.nodes) > 2000
    told = []
    scene = pl.Scene(body, pl.Material(2e3, 0.3, 1.0))
    found = pl.modes(scene, 11, progress=lambda *now: told.append(now)).frequencies
    assert told
    # the cube turns them into each other: a twist and its like, then a triple
    assert found[6] == pytest.approx(found[7], rel=1e-4)
    assert found[8] == pytest.approx(found[10], rel=1e-4)
    with pytest.raises(pl.BadInput, match="iterated"):
        pl.modes(scene, 3, method="guess")


def test_modes_are_those_of_the_motion():
    """Started in a mode's shape, the linear body swings at the mode's frequency."""
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.1), size=(1.0, 0.2)), 0.1)
    scene = pl.Scene(
        body, pl.Material(500.0, 0.3, 1.0), gravity=(0, 0), model="linear", tolerance=1e-12,
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0), offset=1e-9))],
    )  # fmt: skip
    mode = pl.modes(scene, 1)
    period = 1.0 / mode.frequencies[0]
    scene = pl.Scene(**{**vars(scene), "integrator": pl.Newmark2(period / 200)})
    system = frozen_model(scene)
    state = system.initial_state()
    v = np.zeros((system.node_count, 3))
    v[:, :2] = mode.shapes[0]
    state.v.assign(v)
    amplitude = []
    for _ in range(200):
        state, _ = system.step(state)
        inertia = system.inertia.mass.to_scipy() @ state.u.numpy()[:, :2]
        amplitude.append(np.sum(inertia * mode.shapes[0]))
    exact = period / (2 * np.pi) * np.sin(2 * np.pi * np.arange(1, 201) / 200)
    assert amplitude == pytest.approx(exact, abs=1e-3 * period / (2 * np.pi))


def test_damping_ratios_at_two_frequencies():
    material = pl.Material().with_damping_ratios(frequencies=(2.0, 10.0), ratios=(0.02, 0.03))
    w = 2 * np.pi * np.array([2.0, 10.0])
    ratios = (material.mass_damping / w + material.stiffness_damping * w) / 2
    assert ratios == pytest.approx([0.02, 0.03], rel=1e-12)
