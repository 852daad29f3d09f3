"""The nearest known node, against SciPy's exact transform and by hand."""

import numpy as np
import pytest
from scipy import ndimage

from pliant.core.launch import set_threads, thread_count
from pliant.levelset.nearest_node import nearest_nodes


@pytest.mark.parametrize("shape", [(41, 37), (23, 31, 19), (60, 2, 50)])
@pytest.mark.parametrize("share", [0.3, 0.02])
def test_distances_are_exact(shape, share):
    rng = np.random.default_rng(7)
    known = rng.random(shape) < share
    way, nearest = nearest_nodes(known)
    assert way == pytest.approx(ndimage.distance_transform_edt(~known), abs=1e-12)
    assert known.reshape(-1)[nearest].all()
    there = np.stack(np.unravel_index(nearest, shape))
    assert np.linalg.norm(there - np.indices(shape), axis=0) == pytest.approx(way, abs=1e-12)


def test_one_known_corner():
    """In a box of 4 x 5 x 6 the far corner is sqrt(9 + 16 + 25) away."""
    known = np.zeros((4, 5, 6), bool)
    known[0, 0, 0] = True
    way, nearest = nearest_nodes(known)
    assert way[-1, -1, -1] == pytest.approx(np.sqrt(50.0))
    assert (nearest == 0).all()


def test_threads_do_not_matter():
    known = np.random.default_rng(8).random((40, 40, 40)) < 0.01
    before, found = thread_count(), []
    try:
        for count in (1, 2):
            set_threads(count)
            found.append(nearest_nodes(known))
    finally:
        set_threads(before)
    assert np.array_equal(found[0][1], found[1][1])
