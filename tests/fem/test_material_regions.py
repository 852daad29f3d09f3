"""Materials by region: which cells have them, and what they do."""

import numpy as np
import pytest

import pliant as pl
from pliant.fem.material_regions import middles

L, H = 2.0, 0.25
END = pl.shapes.half_space(normal=(-1.0, 0.0, 0.0), offset=-L + 1e-9)
START = pl.shapes.half_space(normal=(1.0, 0.0, 0.0), offset=1e-9)


def rod(*, spacing=0.125, **material):
    body = pl.GridBody(pl.shapes.box(center=(L / 2, H / 2, H / 2), size=(L, H, H)), spacing)
    return pl.Scene(
        body, pl.Material(poisson_ratio=0.0, **material), model="linear", gravity=(0, 0, 0),
        fixed=[pl.Fixed(START)], loads=[pl.Traction(END, (10.0, 0.0, 0.0))],
    )  # fmt: skip


def beyond(x, **numbers):
    return pl.MaterialRegion(pl.shapes.half_space(normal=(-1, 0, 0), offset=-x), **numbers)


def test_two_springs_in_series():
    scene = rod(youngs_modulus=2000.0, regions=[beyond(1.25, youngs_modulus=20000.0)])
    u = pl.solve_static(scene, tolerance=1e-10)
    moved = scene.body.displacement_at(np.array([[L, H / 2, H / 2]]), u)[0, 0]
    assert moved == pytest.approx(10.0 * (1.25 / 2000.0 + 0.75 / 20000.0), rel=1e-6)


@pytest.mark.parametrize(("border", "stiff"), [(1.24, 6), (1.18, 7), (1.32, 5)])
def test_a_cell_belongs_to_the_region_that_holds_its_middle(border, stiff):
    """Cells of 1/8: those whose middles, at (k + 1/2) / 8, lie beyond the border."""
    scene = rod(regions=[beyond(border, youngs_modulus=9.0)])
    E = scene.cell_material.youngs_modulus
    assert set(E) == {2000.0, 9.0}
    assert (E == 9.0).sum() == stiff * 4


def test_the_middle_of_a_cut_cell_is_that_of_its_filled_part():
    """A box up to x = 1.03 in cells of 0.1: the last layer's middle is at 1.015, not at 1.05."""
    body = pl.GridBody(pl.shapes.box(center=(0.515, 0.1, 0.1), size=(1.03, 0.2, 0.2)), 0.1)
    assert middles(body)[:, 0].max() == pytest.approx(1.015, abs=1e-9)
    rim = pl.MaterialRegion(pl.shapes.half_space(normal=(-1, 0, 0), offset=-1.01), density=7.0)
    density = pl.Scene(body, pl.Material(regions=[rim])).cell_material.density
    assert (density == 7.0).sum() == 4
    assert density @ body.cell_volumes == pytest.approx(0.04 + 7.0 * 0.03 * 0.04)


def test_the_later_of_two_regions_counts_and_only_for_what_it_says():
    scene = rod(
        youngs_modulus=1.0,
        regions=[beyond(0.5, youngs_modulus=2.0, density=5.0), beyond(1.0, youngs_modulus=3.0)],
    )
    x = middles(scene.body)[:, 0]
    assert (scene.cell_material.youngs_modulus == np.select([x < 0.5, x < 1], [1, 2], 3)).all()
    assert (scene.cell_material.density == np.where(x < 0.5, 1.0, 5.0)).all()
    assert np.ndim(scene.cell_material.poisson_ratio) == 0


def test_regions_follow_the_body_to_another_grid():
    scene = rod(regions=[beyond(1.25, youngs_modulus=9.0)])
    coarse = scene.coarser(space=2.0)
    assert len(coarse.body.cells) == 8
    assert (coarse.cell_material.youngs_modulus == 9.0).sum() == 3


@pytest.mark.parametrize(
    ("region", "said"),
    [
        (dict(youngs_modulus=-1.0), r"regions\[0\].youngs_modulus = -1 must be positive"),
        (dict(youngs_modulus=[1.0, 2.0]), r"regions\[0\].youngs_modulus must be one number"),
        ({}, "needs a number of its own"),
    ],
)
def test_bad_regions(region, said):
    with pytest.raises(pl.BadInput, match=said):
        rod(regions=[beyond(1.0, **region)])


def test_a_region_that_misses_the_body():
    with pytest.raises(
        pl.BadInput, match=r"material.regions\[0\]: its shape holds the middle of no"
    ):
        rod(regions=[beyond(5.0, density=2.0)])
