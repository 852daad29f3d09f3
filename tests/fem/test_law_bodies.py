"""Laws on other bodies: plane strain, walls inside cells, and parameters that vary over cells."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh

import pliant as pl
from pliant.dynamics.implicit import ImplicitModel
from pliant.fem.laws import LAWS


def face(axis, at, side, dim=3):
    normal = np.zeros(dim)
    normal[axis] = -side
    return pl.shapes.half_space(normal=tuple(normal), offset=-side * at + 1e-9)


def plane_strain_side(law, stretch):
    """Lateral stretch of a sheet held in thickness and free at its sides."""
    from scipy.optimize import brentq

    from pliant.fem.laws.curves import principal_stresses

    def across(t):
        return float(principal_stresses(law, stretch, t, 1.0)[1])

    return brentq(across, 0.5, 1.5, xtol=1e-14)


@pytest.mark.parametrize("stretch", [0.7, 1.4])
def test_plane_strain_triangles(stretch):
    """A 2D bar pulled by rollers: the closed form of plane strain, to rounding."""
    shape = pl.shapes.box(center=(0.5, 0.3), size=(1.0, 0.6))
    body = pl.TetBody(shape, edge_length=0.2)
    law = LAWS["neo-hookean"].from_moduli(3e4, 0.4)
    held = [pl.Fixed(face(a, 0.0, -1, 2), axes="xy"[a]) for a in range(2)]
    held.append(pl.Fixed(face(0, 1.0, 1, 2), (stretch - 1, 0), axes="x"))
    u = pl.solve_static(pl.Scene(body, gravity=(0, 0), fixed=held, law=law), tolerance=1e-11)
    side = plane_strain_side(law, stretch)
    assert np.abs(u - body.nodes * [stretch - 1, side - 1]).max() < 1e-9


def test_plane_strain_in_time():
    """A law in 2D moves like the linear model where strains are small."""
    body = pl.TetBody(pl.shapes.box(center=(0, 0), size=(0.8, 0.4)), edge_length=0.2)
    material = pl.Material(1e3, 0.3, mass_damping=0.1)
    runs = [
        pl.simulate(
            pl.Scene(body, material, **kind, gravity=(0, -1e-3), tolerance=1e-11,
                     fixed=[pl.Fixed(face(0, -0.4, -1, 2))]), 5,
        ).displacements
        for kind in ({"model": "linear"}, {"law": "neo-hookean"})
    ]  # fmt: skip
    size = np.abs(runs[0]).max()
    assert size > 0.0
    assert np.abs(runs[1] - runs[0]).max() < 1e-4 * size


def slip(spacing, stretch=1.3):
    """Largest error [m] of a bar of 1 m stretched between weak walls."""
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.2, 0.2), size=(1.0, 0.4, 0.4)), spacing)
    law = LAWS["neo-hookean"].from_moduli(3e4, 0.3)
    held = [pl.Fixed(face(a, 0.0, -1), axes="xyz"[a]) for a in range(3)]
    held.append(pl.Fixed(face(0, 1.0, 1), (stretch - 1, 0, 0), axes="x"))
    scene = pl.Scene(body, gravity=(0, 0, 0), fixed=held, law=law)
    u = pl.solve_static(scene, tolerance=1e-10)
    side = pl.laws.uniaxial(law, [stretch])[1][0]
    exact = body.nodes * [stretch - 1, side - 1, side - 1]
    return float(np.abs(u - exact).max())


def test_walls_slip_by_a_share_of_a_cell():
    """The penalty of walls with a law errs by traction / eta: first order in the spacing."""
    coarse, fine = slip(0.2), slip(0.1)
    assert coarse < 0.02 * 0.3 * 0.2  # 2 % of a cell times the strain
    assert fine < 0.6 * coarse


def test_walls_slip_less_with_a_larger_penalty(monkeypatch):
    """The slip is inversely proportional to the penalty: it is the wall's and nothing else."""
    found = []
    for stiffer in (20.0, 40.0):
        monkeypatch.setattr("pliant.fem.cutting.walls.STIFFER", stiffer)
        found.append(slip(0.2))
    assert found[0] / found[1] == pytest.approx(2.0, rel=0.05)


def sleeve(end, spacing=0.01):
    """First frequencies [Hz] of a beam held by its sides up to `end`: penalties, exact walls."""
    region = pl.shapes.box(center=(end / 2 - 0.05, 0, 0), size=(end + 0.1, 0.1, 0.1))
    scene = pl.Scene(
        pl.GridBody(pl.shapes.box(center=(0.08, 0, 0), size=(0.16, 0.04, 0.04)), spacing),
        pl.Material(1e5, 0.35, density=1000.0), fixed=[pl.Fixed(region)], model="corotated",
    )  # fmt: skip
    s = ImplicitModel(replace(scene, law="neo-hookean"))  # which penalties alone hold
    assert s.walls is not None
    assert s.tractions is None
    s.elasticity.assemble(s.matrix, s.inertia.mass, mass_factor=0.0, stiffness_factor=1.0)
    s.walls.operator.assemble(s.matrix, 1.0)
    M = sparse.kron(s.inertia.mass.to_scipy(), sparse.identity(3)).tocsc()
    values = eigsh(s.matrix.to_scipy().tocsc(), 2, M, sigma=0.0, which="LM")[0]
    return np.sqrt(values.min()) / (2.0 * np.pi), pl.modes(scene, 2).frequencies[0]


@pytest.mark.parametrize("end", [0.03, 0.0325, 0.035, 0.0375])
def test_walls_end_where_they_should(end):
    """Wherever in a cell a wall ends: firm penalties alone would be 3.4 to 8 % too stiff here."""
    found, exact = sleeve(end)
    assert found == pytest.approx(exact, rel=0.015)


def test_parameters_may_vary_from_cell_to_cell():
    """Two layers in series: stretches shared out by their own curves, stresses equal."""
    shape = pl.shapes.box(center=(0.5, 0.2, 0.2), size=(1.0, 0.4, 0.4))
    body = pl.TetBody(shape, edge_length=0.2)
    mean = body.nodes[body.cells].mean(axis=1)
    soft = mean[:, 0] < 0.5
    # no lateral contraction in either layer, so the stretch along x is all there is
    law = LAWS["neo-hookean"](lam=np.zeros(len(soft)), mu=np.where(soft, 500.0, 1500.0))
    held = [pl.Fixed(face(0, 0.0, -1)), pl.Fixed(face(0, 1.0, 1), (0.3, 0, 0))]
    held += [pl.Fixed(face(a, e, s), axes="xyz"[a]) for a in (1, 2) for e, s in ((0, -1), (0.4, 1))]
    u = pl.solve_static(pl.Scene(body, gravity=(0, 0, 0), fixed=held, law=law), tolerance=1e-11)
    middle = np.abs(body.nodes[:, 0] - 0.5) < 1e-9
    assert middle.any()
    found = 1.0 + u[middle, 0].mean() / 0.5
    # mu (l - 1/l) is the same on both sides, l_soft + l_hard = 2.6
    other = 2.6 - found
    assert 500.0 * (found - 1 / found) == pytest.approx(1500.0 * (other - 1 / other), rel=1e-9)


def test_a_stiffness_field_under_a_law_is_an_unknown():
    """Gradient by the modulus of every cell, by the adjoint, against a difference."""

    from pliant.inverse.measuring.losses import Loss
    from pliant.inverse.measuring.measures import NodeMotions
    from pliant.inverse.motion.problem import Problem
    from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

    shape = pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2))
    body = pl.TetBody(shape, edge_length=0.2)
    rng = np.random.default_rng(3)
    E = 2e3 * np.exp(0.3 * rng.standard_normal(len(body.cells)))
    scene = pl.Scene(
        body, pl.Material(E, 0.3, density=5.0, stiffness_damping=0.003), law="neo-hookean",
        fixed=[pl.Fixed(face(0, 0.0, -1))], integrator=pl.Newmark1(dt=0.02, theta=0.6),
        tolerance=1e-12,
    )  # fmt: skip
    seen = NodeMotions.of(pl.simulate(scene, 3))
    start = 1.1 * E
    away = replace(scene, material=replace(scene.material, youngs_modulus=start))
    unknowns = UnknownSet((make_unknown("youngs_modulus", start, away),))
    problem = Problem(away, seen, unknowns)
    q, loss = unknowns.start(), Loss(0.01, "squares")
    gradient = problem.gradient(q, loss)[1]
    assert gradient.shape == (len(body.cells),)
    d, h = rng.standard_normal(len(q)), 1e-4
    ends = [problem.evaluate(q + s * h * d, loss, derivatives=False).cost for s in (1.0, -1.0)]
    assert gradient @ d == pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-6)
