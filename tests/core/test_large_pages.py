"""Large arrays on large pages: asked for within the array only, elsewhere harmless."""

import numpy as np
import pytest
import warp as wp

from pliant.core import large_pages
from pliant.core.launch import to_device, zeros


@pytest.mark.parametrize(
    ("pointer", "size", "start", "count"),
    [
        (0x200000, 0x400000, 0x200000, 0x400000),  # whole pages
        (0x200010, 0x600000, 0x400000, 0x400000),  # the ends belong to others
    ],
)
def test_whole_pages_within_the_array(monkeypatch, pointer, size, start, count):
    asked = []
    monkeypatch.setattr(
        large_pages, "_madvise", lambda p, n, advice: asked.append((p.value, n.value, advice))
    )
    large_pages.ask_for_large_pages(pointer, size)
    assert asked == [(start, count, 14)]


def test_small_arrays_are_left_alone(monkeypatch):
    monkeypatch.setattr(large_pages, "_madvise", lambda *_: pytest.fail("asked"))
    large_pages.ask_for_large_pages(0x200010, 0x300000)
    large_pages.ask_for_large_pages(0, 0)
    assert zeros(0, wp.vec3d).shape == (0,)


def test_arrays_are_what_they_were():
    assert not zeros((700_000, 2), wp.vec3d).numpy().any()
    given = np.arange(3_000_000.0).reshape(-1, 3)
    on_device = to_device(given, wp.vec3d)
    given[:] = 0.0  # the caller's own, not the copy's
    assert np.array_equal(on_device.numpy(), np.arange(3_000_000.0).reshape(-1, 3))
