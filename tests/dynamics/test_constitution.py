"""What a body is made of: one record, whose entries in scenes and files cannot contradict."""

from dataclasses import replace

import pytest

import pliant as pl
from pliant.app.describing.scene_files import build_scene, describe_scene
from pliant.dynamics.constitution import MODELS, Linear, constitution_of
from pliant.fem.laws import LAWS
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

BLOCK = pl.GridBody(pl.shapes.box(size=(0.2, 0.1, 0.1)), 0.05)


def test_every_tag_has_a_record_of_its_own():
    for tag, kind in MODELS.items():
        made = pl.Scene(BLOCK, model=tag).constitution
        assert (made.tag, made.words) == (tag, kind.words)
        assert made.rests_as in MODELS
    named = pl.Scene(BLOCK, law="neo-hookean").constitution
    own = pl.Scene(BLOCK, law=pl.laws.NeoHookean(lam=1e3, mu=500.0)).constitution
    assert named.tag == own.tag == "law"
    assert (named.follows_moduli, own.follows_moduli) == (True, False)
    assert own.parameters() == {"lam": "Pa", "mu": "Pa"}


def test_another_model_is_one_more_entry(monkeypatch):
    """Scenes, files and steps take it without a change elsewhere."""

    class Stiffer(Linear):
        tag = rests_as = "twice-as-stiff"
        words = "linear, with twice the moduli"

        def moduli(self):
            lam, mu = super().moduli()
            return 2.0 * lam, 2.0 * mu

        def make_model(self):
            return replace(self.scene, model="linear", material=twice).make_model()

    monkeypatch.setitem(MODELS, Stiffer.tag, Stiffer)
    given, twice = pl.Material(2e3, 0.3), pl.Material(4e3, 0.3)
    scene = build_scene(describe_scene(pl.Scene(BLOCK, given, model=Stiffer.tag)))
    known = pl.simulate(pl.Scene(BLOCK, twice, model="linear"), 3)
    assert (pl.simulate(scene, 3).displacements == known.displacements).all()


def test_every_number_of_a_law_has_a_unit():
    for energy in LAWS.values():
        assert set(energy.units) >= set(energy.parameters), energy.name


@pytest.mark.parametrize("tag", MODELS)
def test_files_say_it_again(tag):
    scene = pl.Scene(BLOCK, model=tag)
    assert build_scene(describe_scene(scene)).model == tag


def test_a_law_and_another_model_contradict_each_other():
    with pytest.raises(pl.BadInput, match="contradict each other.*leave model out"):
        pl.Scene(BLOCK, model="linear", law="neo-hookean")
    table = describe_scene(pl.Scene(BLOCK, law="neo-hookean")) | {"model": "linear"}
    with pytest.raises(pl.BadInput, match="contradict"):
        build_scene(table)
    with pytest.raises(pl.BadInput, match="model: there is no model 'linaer'.*'linear'"):
        build_scene(table | {"model": "linaer"})


@pytest.mark.parametrize(
    ("first", "second"),
    [("youngs_modulus", "law.mu"), ("gravity", "gravity_direction"),
     ("damping_ratios", "stiffness_damping")],
)  # fmt: skip
def test_the_same_is_not_unknown_twice(first, second):
    starts = {"youngs_modulus": 2e3, "law.mu": 700.0, "gravity": (0.0, -9.8, 0.0),
              "gravity_direction": (0.0, -1.0, 0.0), "damping_ratios": (0.01, 0.01),
              "stiffness_damping": 0.01}  # fmt: skip
    scene = pl.Scene(BLOCK, law="neo-hookean")
    members = tuple(make_unknown(n, starts[n], scene) for n in (first, second))
    with pytest.raises(pl.BadInput, match="say the same in two ways"):
        UnknownSet(members)


def test_a_variant_is_made_of_what_it_says():
    """The record is the scene's, not the first one's."""
    scene = pl.Scene(BLOCK, pl.Material(1e4, 0.3), law="neo-hookean")
    stiffer = replace(scene, material=pl.Material(2e4, 0.3))
    assert constitution_of(stiffer).moduli()[1] == pytest.approx(
        2.0 * scene.constitution.moduli()[1]
    )
