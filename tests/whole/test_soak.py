"""Random ordinary scenes with nothing but defaults: no explosion, nothing silent."""

import pytest

from soak_scenes import draw, judge


@pytest.mark.parametrize("seed", range(60))
def test_ordinary_scenes(seed):
    drawn = draw(seed)
    assert judge(drawn, steps=40).wrong == [], drawn.words


def test_a_soft_body_that_collapses_is_not_thrown_about():
    """Clamped, 4.5 kPa and 2,019 kg/m3, in steps of 10 ms: whole ones gave it 18 %."""
    assert judge(draw(144)).gain < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_five_hundred_ordinary_scenes(seed):
    drawn = draw(seed)
    assert judge(drawn).wrong == [], drawn.words
