"""Models of particles in scenes and files: one word, and numbers of their own."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing.scene_files import build_scene, describe_scene, load_scene
from pliant.dynamics.constitution import models

BLOCK = pl.GridBody(pl.shapes.box(size=(0.2, 0.1, 0.1)), 0.05)
TAGS = ["position-based", "shape-matching", "mass-spring"]


@pytest.mark.parametrize("tag", TAGS)
def test_files_say_it_again(tag, tmp_path):
    assert tag in models()
    scene = pl.Scene(BLOCK, model=tag, numbers={"substeps": 3})
    again = build_scene(describe_scene(scene))
    assert (again.model, again.numbers) == (tag, scene.numbers)
    scene.save(tmp_path / "scene.toml")
    assert load_scene(tmp_path / "scene.toml").numbers == scene.numbers


@pytest.mark.parametrize("tag", TAGS)
def test_runs_go_on_with_the_same_bits(tag):
    scene = pl.Scene(BLOCK, model=tag, obstacles=[pl.Plane(offset=-0.08)])
    whole = pl.simulate(scene, 70)
    resumed = pl.simulate(scene, 70, resume=pl.simulate(scene, 66))
    assert (whole.displacements == resumed.displacements).all()


@pytest.mark.parametrize("tag", TAGS)
def test_what_rests_is_the_elastic_body(tag):
    wall = [pl.Fixed(pl.shapes.box(center=(-0.1, 0.0, 0.0), size=(1e-3, 1.0, 1.0)))]
    scene = pl.Scene(BLOCK, fixed=wall, gravity=(0.0, -0.1, 0.0))
    particles = replace(scene, model=tag)
    assert pl.solve_static(particles) == pytest.approx(pl.solve_static(scene), abs=1e-9)
    assert pl.modes(particles, 2).frequencies == pytest.approx(pl.modes(scene, 2).frequencies)
    u = np.random.default_rng(1).normal(0.0, 1e-3, BLOCK.nodes.shape)
    assert particles.stress().at(u).von_mises == pytest.approx(scene.stress().at(u).von_mises)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"substep": 3}, "did you mean 'substeps'"),
        ({"substeps": 1.5}, "whole number"),
        ({"iterations": 0}, "between 1 and"),
        ({"substeps": "many"}, "must be a number"),
    ],
)
def test_wrong_numbers_are_named(numbers, words):
    with pytest.raises(pl.BadInput, match=words):
        pl.Scene(BLOCK, model="position-based", numbers=numbers)


def test_numbers_belong_to_their_model():
    with pytest.raises(pl.BadInput, match="none of its own"):
        pl.Scene(BLOCK, numbers={"substeps": 3})
    scene = pl.Scene(BLOCK, model="position-based", numbers={"substeps": 3})
    assert replace(scene, model="corotated").numbers is None
    with pytest.raises(pl.BadInput, match="contradict"):
        pl.Scene(BLOCK, model="position-based", law="neo-hookean")
    branched = pl.Material(branches=[pl.Branch(1e3, 0.1)])
    with pytest.raises(pl.BadInput, match="branches"):
        pl.Scene(BLOCK, branched, model="position-based")
