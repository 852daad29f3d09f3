"""Thin parts that come apart on a coarse grid are counted, told of and left out on request."""

import re
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing.scene_files import build_scene, describe_scene
from pliant.core.lengths import length, place
from pliant.fem.bodies.loose_pieces import joining_spacing

BUNNY = Path("/work/shared/data/sdf_bunny_27x31x22.npz")


def surface_pieces(body):
    """Components of the surface, by its triangles' corners."""
    facets = body.surface.facets
    label = np.arange(facets.max() + 1)
    while True:
        lowest = label.copy()
        for k in range(facets.shape[1]):
            np.minimum.at(lowest, facets[:, k], label[facets].min(axis=1))
        if np.array_equal(lowest, label):
            return len(np.unique(label[facets]))
        label = lowest


def thin_ring():
    """A tenth of a metre thick."""
    return pl.shapes.torus(major=1.0, minor=0.05)


def test_a_thin_ring_comes_apart_and_says_so(caplog):
    body = pl.GridBody(thin_ring(), 0.3)
    count = surface_pieces(body)
    assert count > 1
    assert len(body.warnings) == 1
    assert [r.getMessage() for r in caplog.records] == list(body.warnings)
    found = re.match(
        r"the surface falls into (\d+) pieces at this spacing \(0.3 m\); the thinnest part needs "
        r"about ([\d.]+) mm\.",
        body.warnings[0],
    )
    assert found
    assert int(found[1]) == count
    needed = 1e-3 * float(found[2])
    assert 0.03 < needed < 0.1  # a node is inside all along if it is less than the thickness
    fine = pl.GridBody(thin_ring(), needed)
    assert fine.warnings == ()
    assert surface_pieces(fine) == 1


@pytest.mark.parametrize("subdivisions", [None, 1, 2])
def test_the_largest_piece_alone(subdivisions):
    """Of two balls the larger, as if it were alone, to the last bit of its volume."""
    large, small = (
        pl.shapes.sphere(radius=1.0),
        pl.shapes.sphere(center=(2.5, 0.0, 0.0), radius=0.7),
    )
    options = {"subdivisions": subdivisions}
    body = pl.GridBody(large | small, 0.2, pieces="largest", **options)
    alone = pl.GridBody(large | pl.shapes.sphere(radius=0.3), 0.2, **options)
    assert body.warnings == ()
    assert surface_pieces(body) == 1
    assert np.array_equal(body.nodes, alone.nodes)
    assert body.volume == pytest.approx(alone.volume, rel=1e-12)
    rest = body.surface.positions(body.nodes)
    assert np.linalg.norm(rest, axis=1) == pytest.approx(1.0, abs=0.05)
    whole = pl.GridBody(large | small, 0.2, **options)
    assert "do not join them" in whole.warnings[0]
    with pytest.raises(pl.BadInput, match="'all' or 'largest'"):
        pl.GridBody(large, 0.2, pieces="some")


@pytest.mark.parametrize("subdivisions", [None, 1])
def test_a_hollow_body_is_one_piece(subdivisions):
    hollow = pl.shapes.sphere(radius=1.0) - pl.shapes.sphere(radius=0.5)
    body = pl.GridBody(hollow, 0.2, subdivisions=subdivisions)
    assert surface_pieces(body) == 2
    assert body.warnings == ()
    plate = pl.GridBody(pl.shapes.box(size=(1.0, 1.0, 0.03)), 0.1)  # no node is inside it
    assert plate.warnings == ()


def test_scene_files_keep_the_choice(tmp_path):
    balls = {"type": "union", "shapes": [
        {"type": "sphere", "radius": 1.0},
        {"type": "sphere", "radius": 0.5, "center": [2.5, 0.0, 0.0]},
    ]}  # fmt: skip
    scene = build_scene({"shape": balls, "body": {"spacing": 0.25, "pieces": "largest"}})
    assert scene.body.nodes[:, 0].max() < 1.5
    assert describe_scene(scene)["body"]["pieces"] == "largest"
    assert scene.coarser(space=1.2).body.pieces == "largest"
    with pytest.raises(pl.BadInput, match=r"body\.pieces"):
        build_scene({"shape": balls, "body": {"pieces": "smallest", "spacing": 0.25}})
    with pytest.raises(pl.BadInput, match=r"body\.pieces: only a grid"):
        build_scene({"shape": balls, "body": {"kind": "tets", "edge_length": 0.5, "pieces": "all"}})


def test_the_ears_of_a_bunny():
    if not BUNNY.is_file():
        pytest.skip(f"*** {BUNNY} IS MISSING: the bunny's ears are not tested ***")
    shape = pl.load_shape(BUNNY)
    at_nodes = {"subdivisions": 1}  # by default cells of half a metre know the samples within
    body = pl.GridBody(shape, 0.5, **at_nodes)
    assert f"falls into {surface_pieces(body)} pieces" in body.warnings[0]
    needed = joining_spacing(shape, 0.5)
    assert needed is not None
    lost = []
    for spacing, how in ((0.5, at_nodes), (needed, {}), (0.5, {})):
        largest = pl.GridBody(shape, spacing, pieces="largest", **how)
        assert surface_pieces(largest) == 1
        lost.append(1.0 - largest.volume / pl.GridBody(shape, spacing, **how).volume)
    assert lost[0] > 1e-4
    assert max(lost[1:]) < 1e-5  # the field has a speck of its own that no spacing joins


def test_lengths_have_sensible_units():
    told = {6.02e-3: "6.02 mm", 0.25: "0.25 m", 0.0999999: "100 mm", 3.2e-5: "32 um", 12.0: "12 m",
            0.0: "0 m", 25e3: "25 km", -0.0123: "-12.3 mm"}  # fmt: skip
    assert {value: length(value) for value in told} == told
    assert place((0.025, 0.0, -0.0035)) == "(25, 0, -3.5) mm"
