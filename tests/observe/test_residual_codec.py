"""Images against predictions: the stated error, exact masks, sizes next to the entropy."""

import numpy as np
import pytest

from pliant import BadInput
from pliant.observe.residual_codec import Decoder, Encoder, packed, step_of, unpacked

SIZE = 900


def film(whole: bool, seed: int = 3):
    """Six images of two cameras: valid pixels, holes, and a background that nothing predicts."""
    rng = np.random.default_rng(seed)
    out = []
    for k in range(6):
        for camera in range(2):
            value = 2.0 + 0.3 * np.sin(np.arange(SIZE) / 50.0 + k) + camera
            value += 3e-3 * rng.standard_normal(SIZE)
            value[rng.random(SIZE) < 0.2] = 0.0
            value[:100] = 4.5  # a wall
            guess = value + 2e-3 * rng.standard_normal(SIZE)
            guess[:150] = 0.0
            if whole:
                value, guess = np.rint(1000.0 * value), np.rint(1000.0 * guess)
            out.append((camera, value, np.where(value > 0.0, np.maximum(guess, 0.0), 0.0)))
    return out


@pytest.mark.parametrize(
    ("whole", "error"), [(False, 1e-3), (False, 2e-5), (True, 0.0), (True, 1e-3), (True, 4e-3)]
)
def test_every_pixel_comes_back_within_the_error(whole, error):
    images = film(whole)
    step = step_of(error, per_metre=1000.0 if whole else None)
    coder = Encoder(step, whole=whole)
    told = [coder.add(c, value, guess[value > 0.0]) for c, value, guess in images]
    decoder = Decoder(step, coder.streams, [SIZE] * len(images), whole=whole)
    for (camera, value, guess), mine in zip(images, told, strict=True):
        pixel, hit = decoder.mask(camera, SIZE)
        assert np.array_equal(pixel, np.flatnonzero(value > 0.0))
        assert np.array_equal(hit, guess[pixel] > 0.0)
        found = decoder.values(camera, pixel, hit, guess[pixel], SIZE)
        assert np.array_equal(found, mine)  # both sides have the same bits
        gap = np.abs(found - value[pixel]) / (1000.0 if whole else 1.0)
        assert gap.max() <= error
        if error:
            assert gap.max() > 0.9 * error  # and no step is wasted


def test_steps_of_images_are_odd_and_count_slanted_rays():
    assert step_of(0.0, per_metre=1000.0) == 1.0
    assert step_of(1e-3, per_metre=1000.0) == 3.0
    assert step_of(1e-3, per_metre=1000.0, cosine=0.9) == 1.0
    assert step_of(2e-3, per_metre=1000.0, cosine=0.9) == 3.0


def test_noise_takes_its_entropy():
    """Gauss' numbers with a standard deviation of s steps: log2(s sqrt(2 pi e)) bits each."""
    n, s = 40_000, 4.0
    rng = np.random.default_rng(0)
    coder = Encoder(1e-3, whole=False)
    coder.add(0, 2.0 + s * 1e-3 * rng.standard_normal(n), np.full(n, 2.0))
    bits = 8.0 * sum(len(data) for data in coder.streams.values()) / n
    entropy = np.log2(s * np.sqrt(2.0 * np.pi * np.e))
    assert entropy < bits < 1.1 * entropy


def test_a_wall_that_stays_costs_next_to_nothing():
    """Ten bytes for an image of 900 pixels."""
    value = np.full(SIZE, 3.3)
    coder = Encoder(1e-4, whole=False)
    first = coder.add(0, value, np.zeros(SIZE))
    once = sum(map(len, coder.streams.values()))
    for _ in range(50):
        assert np.array_equal(coder.add(0, value, np.zeros(SIZE)), first)
    assert sum(map(len, coder.streams.values())) < once + 50 * 10


def test_streams_of_another_length_are_refused():
    data = packed(bytes(10_000))
    assert unpacked(data, 10_000) == bytes(10_000)
    for wrong, most in ((data, 9_999), (data[:-3], 10_000), (b"\xff" + data, 10_000)):
        with pytest.raises(BadInput, match="a stream"):
            unpacked(wrong, most)


def test_an_error_that_no_number_can_tell_is_refused():
    with pytest.raises(BadInput, match="allow more"):
        Encoder(1e-12, whole=False).add(0, np.full(4, 3.0), np.zeros(4))
