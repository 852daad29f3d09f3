"""Tangents of whole simulations by complex steps: an independent copy in NumPy agrees to 1e-8."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.fem.laws import LAWS
from pliant.inverse.complex_copy.complex_motion import NotComplex, complex_runner
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import NodeMotions
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

MATERIAL = pl.Material(2000.0, 0.3, density=1.2, mass_damping=0.1, stiffness_damping=0.01)
BASE = {
    "youngs_modulus": 2000.0, "poisson_ratio": 0.3, "density": 1.2, "mass_damping": 0.1,
    "stiffness_damping": 0.01, "gravity": (0, -9.81, 0.5), "initial_velocity": (0.1, 0, 0),
    "initial_spin": (0, 2.0, 0),
}  # fmt: skip
GROUND = {"ground_normal": (0.05, 1, 0.02), "ground_offset": -0.2, "contact_stiffness": 5e4}


def ball():
    return pl.GridBody(pl.shapes.sphere(radius=0.3, center=(0.33, 0.1, 0.11)), 0.17)


def turned_block():
    shape = pl.shapes.box(center=(0.3, 0, 0), size=(0.5, 0.3, 0.3))
    return pl.GridBody(shape.rotated(axis=(1, 2, 3), angle=0.4), 0.17)


def cube():
    return pl.TetBody(pl.shapes.box(center=(0, 0, 0), size=(0.4, 0.4, 0.4)), edge_length=0.4)


def compared(scene, starts, steps=3):
    """(tangent gradient, complex-step gradient) of a misfit of the nodes' motion."""
    seen = NodeMotions.of(pl.simulate(scene, steps), noise=0.01)
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in starts.items()))
    problem = Problem(scene, seen, unknowns, tangent_tolerance=1e-11)
    q, loss = unknowns.start(), Loss(0.01, "squares")
    by_complex = problem.evaluate(q, loss, runner=complex_runner(unknowns, q))
    return problem.evaluate(q, loss).model[1], by_complex.model[1]


def scene_of(body, **options):
    motion = {"gravity": (0, -9.81, 0.5), "initial_velocity": (0.1, 0, 0),
              "initial_spin": (0, 2.0, 0), "tolerance": 1e-12}  # fmt: skip
    return pl.Scene(body, MATERIAL, **{**motion, **options})


def two_halves():
    inner = pl.shapes.half_space(normal=(-1, 0, 0), offset=-0.3)
    region = pl.MaterialRegion(inner, youngs_modulus=4000.0, density=2.0)
    return pl.Material(2000.0, 0.3, 1.2, regions=[region])


WALL = [pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.1))]
CASES = {
    "cut cells on a wall": (lambda: scene_of(ball(), fixed=WALL), BASE),
    "slivers of a scheme that damps nothing": (
        lambda: scene_of(ball(), fixed=WALL, integrator=pl.Newmark2(dt=0.02)), BASE,
    ),
    "two materials": (
        lambda: replace(scene_of(ball(), fixed=WALL), material=two_halves()),
        {"youngs_modulus": 2000.0, "poisson_ratio": 0.3, "regions.0.youngs_modulus": 4000.0},
    ),
    "a turned lattice": (lambda: scene_of(turned_block(), fixed=WALL), BASE),
    "frames of columns": (
        lambda: scene_of(
            ball(), fixed=WALL, model="corotated-qr", integrator=pl.LinearAcceleration(dt=0.002)
        ),
        BASE,
    ),
    "friction on a plane": (
        lambda: scene_of(
            cube(), obstacles=[pl.Plane(offset=-0.2)], contact=pl.ContactLaw(friction=0.3),
            integrator=pl.ImplicitEuler(dt=0.01),
        ),
        BASE | GROUND,
    ),
    "a plane that follows the modulus": (  # stiffness and margin of the default contact law
        lambda: scene_of(
            cube(), obstacles=[pl.Plane(offset=-0.2)], integrator=pl.GeneralisedAlpha(dt=0.01)
        ),
        {n: BASE[n] for n in ("youngs_modulus", "poisson_ratio", "density")},
    ),
    "a law in cut cells": (
        lambda: scene_of(
            ball(), fixed=WALL, law=LAWS["neo-hookean"].from_moduli(2e3, 0.3),
            integrator=pl.Newmark1(dt=0.02, theta=0.6),
        ),
        {"law.lam": 1150.0, "law.mu": 770.0, "density": 1.2, "stiffness_damping": 0.01},
    ),
    "a law with friction": (
        lambda: scene_of(
            cube(), law="neo-hookean", obstacles=[pl.Plane(offset=-0.2)],
            contact=pl.ContactLaw(friction=0.3), integrator=pl.HHT(dt=0.01),
        ),
        {n: BASE[n] for n in ("youngs_modulus", "poisson_ratio", "density")} | GROUND,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_complex_steps_agree(case):
    make, starts = CASES[case]
    tangent, third = compared(make(), starts)
    assert np.abs(third - tangent).max() < 1e-8 * np.abs(tangent).max()
    assert third == pytest.approx(tangent, rel=1e-6, abs=1e-9 * np.abs(tangent).max())


def test_slivers_are_pulled_back_as_they_are_pushed():
    """Adjoint and tangent of a scheme that damps nothing, through the viscosity of its slivers."""
    scene = scene_of(ball(), fixed=WALL, integrator=pl.Newmark2(dt=0.02))
    seen = NodeMotions.of(pl.simulate(scene, 4), noise=0.01)
    starts = {"youngs_modulus": 2200.0, "poisson_ratio": 0.28, "initial_velocity": (0.2, 0, 0)}
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in starts.items()))
    problem = Problem(scene, seen, unknowns, tangent_tolerance=1e-12)
    q, loss = unknowns.start(), Loss(0.01, "squares")
    adjoint, tangent = problem.gradient(q, loss)[1], problem.evaluate(q, loss).model[1]
    assert adjoint == pytest.approx(tangent, rel=1e-8, abs=1e-10 * np.abs(tangent).max())


def test_a_wrong_derivative_shows(monkeypatch):
    """The complex step does not share the unknowns' slopes: a wrong one is found out."""
    from pliant.dynamics.scene_blocks import Density

    wrong = Density.push

    def doubled(self, model, change):
        return wrong(self, model, 2.0 * change)

    monkeypatch.setattr(Density, "push", doubled)
    tangent, third = compared(scene_of(cube(), fixed=()), {"density": 1.2, "mass_damping": 0.1})
    assert abs(third[0] - tangent[0]) > 1e-2 * abs(third[0])
    assert third[1] == pytest.approx(tangent[1], rel=1e-8)


def test_what_has_no_complex_form_says_so():
    stone = pl.Obstacle(pl.shapes.sphere(radius=0.2, center=(0, -0.5, 0)))
    with pytest.raises(NotComplex, match="sampled"):
        compared(scene_of(cube(), obstacles=[stone]), {"density": 1.2})
    with pytest.raises(NotComplex, match="stretches"):
        compared(scene_of(cube(), law="corotated"), {"density": 1.2})
