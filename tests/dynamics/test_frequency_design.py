"""Frequency design of an arch: derivatives through the solve, and the target met."""

import numpy as np
import pytest

from pliant.complexstep.derivatives import gradient
from pliant.dynamics.frequency_design import Arch, design_arch

ARCH = Arch(counts=(6, 1, 1))
START = np.array([2.0, 0.5, 0.3])
WIND = (0.0, 1.0, 0.0)


def test_gradient_through_the_solve():
    def w2(*p):
        return ARCH.squared_frequency(*p, WIND)

    g = gradient(w2, list(START))
    for i in range(3):
        e = 1e-5 * np.eye(3)[i]
        central = (w2(*(START + e)) - w2(*(START - e))) / 2e-5
        assert float(g[i]) == pytest.approx(float(central), rel=1e-6)


def test_scaling():
    """All lengths doubled: K grows as the length, M as its cube, so w^2 falls to a quarter."""
    small = ARCH.squared_frequency(*START, WIND)
    large = Arch(counts=ARCH.counts, thickness=0.2).squared_frequency(*(2 * START), WIND)
    assert large == pytest.approx(small / 4.0, rel=1e-12)


def test_target_is_met():
    target = 1.3 * float(ARCH.squared_frequency(*START, WIND))
    found = design_arch(ARCH, START, target, wind=WIND)
    assert found.squared_frequency == pytest.approx(target, rel=1e-9)
    assert len(found.history) < 15
    assert (found.dimensions > 0.0).all()
