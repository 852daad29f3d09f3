"""Threads that share launches: every item once, whoever is awake, and nothing kept afterwards."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import gc
import weakref
from threading import Thread
from time import sleep

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core import crew as crews
from pliant.core.launch import Recorded, Series, launch, thread_count, zeros

COUNT = 100


@wp.kernel
def add_index(first: wp.int32, factor: wp.float64, out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    out[i] = out[i] + factor * wp.float64(i)


@pytest.fixture(autouse=True)
def threads():
    before = thread_count()
    yield
    pl.set_threads(before)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_item_once(count):
    pl.set_threads(count)
    out = zeros(COUNT, wp.float64)
    twice, thrice = (Recorded(add_index, COUNT, [f, out], grain=10) for f in (2.0, 3.0))
    assert (twice.pieces == 1) == (count == 1)
    Series([twice, thrice, twice]).run()
    assert np.array_equal(out.numpy(), 7.0 * np.arange(COUNT))
    thrice.set(0, -7.0)
    thrice.run()
    assert np.array_equal(out.numpy(), np.zeros(COUNT))


def test_sleeping_helpers_delay_nobody(monkeypatch):
    """Nobody is woken: the caller does all pieces himself."""
    pl.set_threads(3)
    out = zeros(COUNT, wp.float64)
    call = Recorded(add_index, COUNT, [1.0, out], grain=10)
    sleep(0.05)  # they have spun long enough and sleep
    monkeypatch.setattr(crews._Helper, "rouse", lambda self: None)
    call.run()
    assert np.array_equal(out.numpy(), np.arange(COUNT))


def test_several_callers_take_turns():
    pl.set_threads(2)
    outs = [zeros(COUNT, wp.float64) for _ in range(3)]

    def work(out, factor):
        for _ in range(200):
            launch(add_index, COUNT, [factor, out], grain=10)

    callers = [Thread(target=work, args=(out, f)) for f, out in enumerate(outs, 1)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60.0)
    for f, out in enumerate(outs, 1):
        assert np.array_equal(out.numpy(), 200.0 * f * np.arange(COUNT))


def test_arrays_are_let_go():
    @wp.kernel(module="unique")
    def touch(first: wp.int32, out: wp.array(dtype=wp.float64)):
        out[first + wp.tid()] = wp.float64(1.0)

    out = zeros(COUNT, wp.float64)
    gone = weakref.ref(out)
    launch(touch, COUNT, [out])
    del out
    gc.collect()
    assert gone() is None
