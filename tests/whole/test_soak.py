"""Random ordinary scenes with nothing but defaults: no explosion, nothing silent."""

import pytest

from soak_scenes import draw, judge


@pytest.mark.parametrize("seed", range(60))
def test_ordinary_scenes(seed):
    drawn = draw(seed)
    assert judge(drawn, steps=40).wrong == [], drawn.words


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_five_hundred_ordinary_scenes(seed):
    drawn = draw(seed)
    assert judge(drawn).wrong == [], drawn.words
