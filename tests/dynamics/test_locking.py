"""Cells that lock are told, in a run's warnings and in a fit's advice; others are not."""

import pytest

import pliant as pl

BOX = pl.shapes.box(center=(0.5, 0.0, 0.0), size=(1.0, 0.5, 0.5))
HELD = pl.Fixed(pl.shapes.box(center=(0.0, 0.0, 0.0), size=(0.02, 0.6, 0.6)))
TOLD = {
    "grid, mean": ("mean", None),
    "grid, pointwise": ("pointwise", "mean"),
    "linear": ("mean", "quadratic"),
    "quadratic": ("mean", None),
}


def scene(kind, ratio):
    body = pl.GridBody(BOX, 0.25)
    if not kind.startswith("grid"):
        body = pl.TetBody(BOX, 0.5, order=1 if kind == "linear" else 2)
    return pl.Scene(
        body, pl.Material(2e4, ratio, 1000.0), gravity=(0.0, -9.81, 0.0), fixed=[HELD],
        dilatation=TOLD[kind][0], integrator=pl.GeneralisedAlpha(dt=0.01),
    )  # fmt: skip


@pytest.mark.parametrize("kind", TOLD)
def test_what_locks_says_so(kind):
    way = TOLD[kind][1]
    said = [w for w in pl.simulate(scene(kind, 0.49), 1).warnings() if " lock at " in w]
    assert len(said) == (way is not None)
    if way is not None:
        assert "0.49:" in said[0]
        assert way in said[0].split("Use ")[1]
    assert not [w for w in pl.simulate(scene(kind, 0.4), 1).warnings() if " lock at " in w]


def test_a_fit_advises_on_it():
    locked = scene("grid, pointwise", 0.49)
    seen = pl.TrackedPoints.of(pl.simulate(locked, 4), [[1.0, 0.25, 0.0]], noise=1e-4, seed=1)
    fit = pl.reconstruct(locked, seen, {"youngs_modulus": 2.1e4}, discretisation=False)
    assert any(" lock at " in line for line in fit.advice)
