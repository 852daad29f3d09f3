"""Threads that run a list of launches together without going back to Python in between.

A multigrid cycle is a hundred launches of 5 to 500 microseconds. Handing each to a second Python
thread costs 50 to 170 microseconds where a sleeping core must wake; here the helpers spin on a word
of memory for a millisecond before they sleep, and a hand-over costs less than one microsecond.

Each helper has a mailbox. The caller puts a piece of work in and raises `SEQUENCE`; whoever first
changes `CLAIM` from open to taken does the piece, so a helper that is asleep or has lost its core
delays nobody: the caller does the work himself. A claimed piece is finished when `DONE` has the
piece's number. Nothing here touches results, so they do not depend on who did which piece.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false

import ctypes
import os
from collections.abc import Sequence
from copy import copy
from functools import cache
from threading import Lock, Thread
from typing import Any

import numpy as np
import warp as wp

WORDS = 64
"""Words of 8 bytes in a mailbox: SEQUENCE 0, CLAIM 8, DONE 16, AWAKE 24, the work 32 to 34, each
group on a cache line of its own."""

AWAKE = 24

IDLE_SPINS = 20_000
"""How often a helper looks for work before it sleeps: half a millisecond to one."""

# the snippets are for the CPU; compiled for CUDA, where nothing is handed over, they are empty
_COMMON = """
#ifndef __CUDACC__
    typedef void (*Entry)(void *, void *);
    typedef wp::int32 (*Yield)();
#if defined(__x86_64__) || defined(_M_X64)
#define PLIANT_PAUSE() __builtin_ia32_pause()
#else
#define PLIANT_PAUSE() __asm__ __volatile__("yield")
#endif
"""

_SERVE = (
    _COMMON
    + """
    wp::uint64 *m = mailbox.data;
    wp::uint64 seen = __atomic_load_n(m + 16, __ATOMIC_ACQUIRE);
    int idle = 0;
    while (idle < idle_spins) {
        wp::uint64 number = __atomic_load_n(m, __ATOMIC_ACQUIRE);
        if (number == seen) {
            PLIANT_PAUSE();
            ++idle;
            continue;
        }
        wp::uint64 open = number << 1;
        if (__atomic_compare_exchange_n(m + 8, &open, open | 1, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            ((Entry)m[32])((void *)m[33], (void *)m[34]);
            __atomic_store_n(m + 16, number, __ATOMIC_RELEASE);
        }
        seen = number;
        idle = 0;
    }
    __atomic_store_n(m + 24, (wp::uint64)0, __ATOMIC_RELEASE);
#endif
"""
)

_RUN = (
    _COMMON
    + """
    const int words = 64;
    wp::uint64 *boxes = mailboxes.data;
    const wp::uint64 *t = table.data;
    for (int c = 0; c < count; ++c) {
        const int parts = (int)t[0];
        const wp::uint64 *part = t + 1;
        for (int p = 1; p < parts; ++p) {
            wp::uint64 *m = boxes + (p - 1) * words;
            wp::uint64 number = m[0] + 1;
            m[32] = part[3 * p];
            m[33] = part[3 * p + 1];
            m[34] = part[3 * p + 2];
            __atomic_store_n(m + 8, number << 1, __ATOMIC_RELEASE);
            __atomic_store_n(m, number, __ATOMIC_RELEASE);
        }
        ((Entry)part[0])((void *)part[1], (void *)part[2]);
        for (int p = 1; p < parts; ++p) {
            wp::uint64 *m = boxes + (p - 1) * words;
            wp::uint64 number = m[0];
            wp::uint64 open = number << 1;
            if (__atomic_compare_exchange_n(m + 8, &open, open | 1, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                ((Entry)part[3 * p])((void *)part[3 * p + 1], (void *)part[3 * p + 2]);
                __atomic_store_n(m + 16, number, __ATOMIC_RELEASE);
                continue;
            }
            int spins = 0;
            while (__atomic_load_n(m + 16, __ATOMIC_ACQUIRE) != number) {
                PLIANT_PAUSE();
                if (++spins > 2000 && yield_address) ((Yield)yield_address)();
            }
        }
        t = part + 3 * parts;
    }
#endif
"""
)


@wp.func_native(_SERVE)
def _serve_mailbox(mailbox: wp.array(dtype=wp.uint64), idle_spins: wp.int32): ...


@wp.func_native(_RUN)
def _run_table(
    mailboxes: wp.array(dtype=wp.uint64),
    table: wp.array(dtype=wp.uint64),
    count: wp.int32,
    yield_address: wp.uint64,
): ...


@wp.kernel
def _serve(first: wp.int32, mailbox: wp.array(dtype=wp.uint64), idle_spins: wp.int32):
    _serve_mailbox(mailbox, idle_spins)


@wp.kernel
def _run(
    first: wp.int32,
    mailboxes: wp.array(dtype=wp.uint64),
    table: wp.array(dtype=wp.uint64),
    count: wp.int32,
    yield_address: wp.uint64,
):
    _run_table(mailboxes, table, count, yield_address)


class _Form:
    """How the arguments of a kernel are laid out for given types; made once, checked by Warp."""

    def __init__(self, kernel: Any, inputs: Sequence[Any]):
        command: Any = wp.launch(kernel, dim=1, inputs=list(inputs), device="cpu", record_cmd=True)
        command.fwd_args = None  # a form outlives the arrays it was made from
        self._command = command  # keeps the compiled module loaded
        self._turn = Lock()  # the command is one for all threads
        self.labels = [a.label for a in kernel.adj.args]
        fields = zip(self.labels, map(type, command.params[1:]), strict=True)
        self.layout = type("Arguments", (ctypes.Structure,), {"_fields_": list(fields)})
        self.entry = command.hooks.forward
        self.address = ctypes.cast(self.entry, ctypes.c_void_p).value or 0
        self._bounds: dict[int, Any] = {}

    def bounds(self, count: int) -> Any:
        """Launch bounds of `count` items."""
        with self._turn:
            if count not in self._bounds:
                self._command.set_dim(count)
                self._bounds[count] = self._command.params[0]
            return self._bounds[count]

    def packed(self, index: int, value: Any) -> Any:
        """What the layout holds for a value that is not a plain number, array or struct."""
        with self._turn:
            self._command.set_param_at_index(index, value)
            return self._command.params[index + 1]


_forms: dict[tuple, _Form] = {}


def _signature(value: Any) -> Any:
    return (value.dtype, value.ndim) if type(value) is wp.array else type(value)


class Call:
    """A prepared launch on the CPU: entry point, bounds and arguments, kept alive together."""

    def __init__(self, kernel: Any, count: int, inputs: Sequence[Any]):
        key = (kernel, *map(_signature, inputs))
        form = _forms.get(key)
        if form is None:
            form = _forms[key] = _Form(kernel, inputs)
        self._form, self._inputs = form, inputs
        self._arguments = form.layout()
        for index, value in enumerate(inputs):
            self.set(index, value)
        self._bounds = form.bounds(count)
        self._references = ctypes.byref(self._bounds), ctypes.byref(self._arguments)

    def piece(self, first: int, count: int) -> "Call":
        """The same launch over `count` items from `first` on."""
        other = copy(self)
        other._arguments = self._form.layout.from_buffer_copy(self._arguments)
        other.set(0, first)
        other._bounds = self._form.bounds(count)
        other._references = ctypes.byref(other._bounds), ctypes.byref(other._arguments)
        return other

    @property
    def words(self) -> tuple[int, int, int]:
        """Addresses of entry point, bounds and arguments."""
        return (
            self._form.address,
            ctypes.addressof(self._bounds),
            ctypes.addressof(self._arguments),
        )

    def set(self, index: int, value: Any) -> None:
        """Change argument `index`; its type stays."""
        kind = type(value)
        if kind is not int and kind is not float:
            pack = getattr(value, "__ctype__", None)
            value = pack() if pack is not None else self._form.packed(index, value)
        setattr(self._arguments, self._form.labels[index], value)

    def run(self) -> None:
        """Launch in this thread."""
        self._form.entry(*self._references)


class _Helper:
    """A thread that serves a mailbox while there is work, and sleeps on a lock otherwise."""

    def __init__(self, mailbox: np.ndarray):
        self._mailbox = mailbox
        self._wake = Lock()
        self._wake.acquire()
        words = wp.array(mailbox, dtype=wp.uint64, device="cpu", copy=False)
        self._serve = Call(_serve, 1, [0, words, IDLE_SPINS])
        Thread(target=self._loop, daemon=True, name="pliant").start()

    def _loop(self) -> None:
        while True:
            self._wake.acquire()
            self._serve.run()

    def rouse(self) -> None:
        """Wake it if it sleeps; only the helper itself clears AWAKE, only the caller sets it."""
        if self._mailbox[AWAKE] == 0:
            self._mailbox[AWAKE] = 1
            self._wake.release()


class Crew:
    """The caller's thread and its helpers."""

    def __init__(self, size: int):
        """size: threads in all, the caller's own among them."""
        self.size = size
        boxes = max(size - 1, 1)
        self._memory = np.zeros(boxes * WORDS + 8, np.uint64)
        skip = (-self._memory.ctypes.data % 64) // 8  # whole cache lines
        self._mailboxes = self._memory[skip : skip + boxes * WORDS]
        self._words = wp.array(self._mailboxes, dtype=wp.uint64, device="cpu", copy=False)
        self._helpers = [
            _Helper(self._mailboxes[k * WORDS : (k + 1) * WORDS]) for k in range(size - 1)
        ]
        self._turn = Lock()
        self._row = np.zeros(1 + 3 * size, np.uint64)
        self._row_call = self.call(self._row, 1)

    def call(self, table: np.ndarray, count: int) -> Call:
        """The launch that works through `count` rows of a table (see `rows`)."""
        words = wp.array(table, dtype=wp.uint64, device="cpu", copy=False)
        return Call(_run, 1, [0, self._words, words, count, _yield_address()])

    def run(self, call: Call) -> None:
        """Work through a table; simulations in several threads of a program take turns."""
        with self._turn:
            for helper in self._helpers:
                helper.rouse()
            call.run()


    def run_pieces(self, pieces: Sequence[Call]) -> None:
        """Run the pieces of one launch at the same time."""
        words = rows([pieces])
        with self._turn:
            self._row[: len(words)] = words
            for helper in self._helpers:
                helper.rouse()
            self._row_call.run()


def rows(pieces: Sequence[Sequence[Call]]) -> np.ndarray:
    """The table of a list of launches, each cut into pieces that run at the same time."""
    words: list[int] = []
    for parts in pieces:
        words.append(len(parts))
        for part in parts:
            words.extend(part.words)
    return np.array(words, np.uint64)


@cache
def _yield_address() -> int:
    """Where the C library's sched_yield is; 0 where there is none."""
    function = getattr(ctypes.CDLL(None), "sched_yield", None) if os.name == "posix" else None
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


_crews: dict[int, Crew] = {}
os.register_at_fork(after_in_child=_crews.clear)  # threads do not survive a fork


def crew(size: int) -> Crew:
    """The crew of that size, made once."""
    if size not in _crews:
        _crews[size] = Crew(size)
    return _crews[size]
