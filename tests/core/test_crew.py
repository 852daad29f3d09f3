"""Threads that share launches: every item once, whoever is awake, and nothing kept afterwards."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import ctypes
import gc
import weakref
from threading import Thread
from time import sleep

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.app.terminal.console import set_machine
from pliant.core import crew as crews
from pliant.core import launch as launches
from pliant.core.launch import Recorded, Series, launch, thread_count, zeros
from waiting import soon

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


def test_an_idle_helper_gives_way(monkeypatch):
    """Or its spinning takes the caller's time where both are on one core."""
    turns = []
    count = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: turns.append(1) or 0)
    address = ctypes.cast(count, ctypes.c_void_p).value
    monkeypatch.setattr(crews, "_yield_address", lambda: address)
    crew = crews.Crew(2)
    out = zeros(COUNT, wp.float64)
    crew.run_once(crews.Call(add_index, COUNT, [0, 1.0, out]), 10)
    helper = crew._helpers[0]
    assert soon(lambda: helper._awake[0] == 0)
    assert len(turns) >= crews.IDLE_SPINS // crews.SPINS_A_TURN
    assert np.array_equal(out.numpy(), np.arange(COUNT))


@wp.kernel
def smooth(first: wp.int32, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    n = x.shape[0]
    total = wp.float64(0.0)
    for k in range(-3, 4):
        total += x[(i + k + n) % n] / wp.float64(7.3 + wp.float32(k))
    out[i] = wp.sin(total)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_bits_do_not_depend_on_who_does_what(count, monkeypatch):
    """However the pieces fall to threads that come, go and give way."""

    def repeated(threads):
        pl.set_threads(threads)
        x = wp.array(np.random.default_rng(3).normal(size=977), dtype=wp.float64, device="cpu")
        out = zeros(977, wp.float64)
        there, back = (Recorded(smooth, 977, pair, grain=8) for pair in ((x, out), (out, x)))
        series = Series([there, back, there, back])
        for k in range(60):
            if k % 20 == 19:
                sleep(0.01)  # the helpers fall asleep and are woken again
            series.run()
        return x.numpy().tobytes()

    alone = repeated(1)
    assert repeated(count) == alone
    monkeypatch.setattr(crews._Helper, "rouse", lambda self: None)
    assert repeated(count) == alone


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


def test_no_more_threads_than_cores_are_asked_for(monkeypatch):
    for text in ("1000", "9" * 5000):
        monkeypatch.setattr(launches, "_threads", None)
        monkeypatch.setenv("PLIANT_THREADS", text)
        assert thread_count() == launches.core_count()
    set_machine("cpu", 1_000_000)
    assert thread_count() == launches.core_count()
