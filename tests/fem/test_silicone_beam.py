"""A clamped silicone beam against Taylor-Hood values (benchmarks/reference_values.json).

0.1 x 0.03 x 0.03 m, face x = 0 held; first bending pair, torsion, static drop, at Poisson's ratios
up to 0.4999, wherever the beam lies in its grid.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import pliant as pl

BEAM = json.loads((Path(__file__).parents[2] / "benchmarks/reference_values.json").read_text())[
    "beam"
]
LENGTH, WIDTH = 0.1, 0.03
REFERENCE = {row["poisson_ratio"]: row for row in BEAM["values"]}
RATIOS = tuple(REFERENCE)


@dataclass(frozen=True)
class Place:
    """Where the beam lies: a shift in cells, a turn about an axis [rad]."""

    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    angle: float = 0.0


def shifted(seed: int) -> Place:
    return Place(tuple(np.random.default_rng([31, seed]).uniform(0.0, 1.0, 3)))


def turned(seed: int) -> Place:
    rng = np.random.default_rng([32, seed])
    return Place((0.0, 0.0, 0.0), tuple(rng.normal(size=3)), float(rng.uniform(0.0, np.pi)))


def scene(ratio: float, across: int, place: Place, *, tets: bool = False) -> pl.Scene:
    h = WIDTH / across
    box = pl.shapes.box(center=(LENGTH / 2, 0, 0), size=(LENGTH, WIDTH, WIDTH))
    end = pl.shapes.box(center=(-WIDTH, 0, 0), size=(2 * WIDTH + 2e-7, 2 * WIDTH, 2 * WIDTH))
    shape, region = (
        s.translated(tuple(h * c for c in place.shift)).rotated(angle=place.angle, axis=place.axis)
        for s in (box, end)
    )
    body = pl.TetBody(shape, edge_length=h) if tets else pl.GridBody(shape, h)
    down = np.array([0.0, -BEAM["gravity"], 0.0])
    axis = np.array(place.axis) / np.linalg.norm(place.axis)
    turned_down = (
        np.cos(place.angle) * down + np.sin(place.angle) * np.cross(axis, down)
        + (1.0 - np.cos(place.angle)) * axis * (axis @ down)
    )  # fmt: skip
    material = pl.Material(BEAM["youngs_modulus"], ratio, BEAM["density"])
    return pl.Scene(
        body, material, fixed=[pl.Fixed(region)], gravity=tuple(turned_down), model="linear"
    )


def errors(ratio: float, across: int, place: Place, **options) -> tuple[np.ndarray, float]:
    """Relative errors of the first three frequencies, and of the static drop of the free end."""
    world, exact = scene(ratio, across, place, **options), REFERENCE[ratio]
    corotated = pl.Scene(world.body, world.material, fixed=world.fixed, gravity=world.gravity)
    found = pl.modes(corotated, 3).frequencies
    known = [exact[name]["value"] for name in ("bending_hz", "bending_hz", "torsion_hz")]
    u = pl.solve_static(world)
    tip = np.array([[LENGTH, 0.0, 0.0]]) + np.array(place.shift) * WIDTH / across
    axis, angle = np.array(place.axis) / np.linalg.norm(place.axis), place.angle
    tip = (np.cos(angle) * tip + np.sin(angle) * np.cross(axis, tip)
           + (1.0 - np.cos(angle)) * (tip @ axis)[:, None] * axis)  # fmt: skip
    moved = world.body.displacement_at(tip, u)[0]
    drop = 1e3 * float(moved @ np.array(world.gravity)) / BEAM["gravity"]
    return found / known - 1.0, drop / exact["drop_mm"]["value"] - 1.0


BOUND = {4: 0.02, 8: 0.01}


def check(ratio, across, place, **options):
    frequencies, drop = errors(ratio, across, place, **options)
    assert np.abs(frequencies).max() < BOUND[across], frequencies
    assert abs(drop) < 2.0 * BOUND[across], drop  # as a stiffness: the square of a frequency


@pytest.mark.parametrize("ratio", [0.3, 0.4999])
@pytest.mark.parametrize(
    "place", [Place(), shifted(0), turned(0)], ids=["aligned", "shifted", "turned"]
)
def test_four_cells_across(ratio, place):
    check(ratio, 4, place)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("across", [4, 8])
@pytest.mark.parametrize("seed", [None, *range(20)])
def test_anywhere_in_the_grid(ratio, across, seed):
    check(ratio, across, Place() if seed is None else shifted(seed))


@pytest.mark.slow
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("across", [4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_however_it_is_turned(ratio, across, seed):
    check(ratio, across, turned(seed))


@pytest.mark.slow
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("across", [4, 8])
def test_tetrahedra_of_both_sizes(ratio, across):
    check(ratio, across, Place(), tets=True)
