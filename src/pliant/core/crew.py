"""Threads that run a list of launches together without going back to Python in between.

A multigrid cycle is a hundred launches of 5 to 500 microseconds. Handing each to a second Python
thread costs 50 to 170 microseconds where a sleeping core must wake; here the helpers spin on a word
of memory for a millisecond before they sleep, and a hand-over costs less than one microsecond.

A launch is cut into more pieces than there are threads, and who is free takes the next: cores that
other programs or the host slow down get less to do, and a helper that is asleep delays nobody. The
board they share holds one launch at a time. Its `TICKET` counts the pieces taken; whoever raises it
by one owns that piece, and the launch is over when `DONE` has counted as many. Nothing here touches
results, so they do not depend on who did which piece.

A helper that spins gives way to whoever else wants its core. Where other programs keep the cores
busy, Linux wakes a helper on its caller's own core, and its spinning would take half of the time
there: a step with two threads took 1.6 times as long as with one, and now takes as long (measured
by benchmarks/busy_core.py). It gives way between pieces, so nobody waits for it meanwhile.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from threading import Lock, Thread
from typing import Any

import numpy as np
import warp as wp

from pliant.core.compiling import loading

BOARD = 32
"""Words of 8 bytes on the board, in cache lines of eight: TICKET 0 (the launch's number, 32 bits,
its pieces and the pieces taken, 16 each), DONE 8, the launch 16 to 20 (see `Call.words`)."""

LINE = 8
"""Words of a cache line; each helper has one after the board, whose first word says it is awake."""

IDLE_SPINS = 50_000
"""How often a helper looks for work before it sleeps, for one to two milliseconds: longer than what
a step does in Python between two launches."""

SPINS_A_TURN = 64
"""Spins after which an idle helper gives way: a microsecond or two, which is what giving way costs
where nobody else wants the core."""

ROW = 6
"""Words of a launch in a table (see `Call.words`)."""

ARGUMENT_WORDS = 512
"""Most words a kernel's arguments may take: each thread copies them to set its piece's start."""

# the snippets are for the CPU; compiled for CUDA, where nothing is handed over, they are empty
_COMMON = """
#ifndef __CUDACC__
    typedef wp::uint64 word;
    typedef wp::launch_bounds_t<1> Bounds;
    typedef void (*Entry)(Bounds *, word *);
    typedef wp::int32 (*Yield)();
#if defined(__x86_64__) || defined(_M_X64)
#define PLIANT_PAUSE() __builtin_ia32_pause()
#else
#define PLIANT_PAUSE() __asm__ __volatile__("yield")
#endif
    word *b = board.data;
    word arguments[ARGUMENT_WORDS];
    word copied = ~(word)0;  // number of the launch whose arguments these are
    // take the next piece of the launch on the board and do it; false if none is left
    auto take = [&]() -> bool {
        word ticket = __atomic_load_n(b, __ATOMIC_ACQUIRE);
        const word piece = ticket & 0xffff, pieces = (ticket >> 16) & 0xffff;
        if (piece >= pieces) return false;
        if (!__atomic_compare_exchange_n(b, &ticket, ticket + 1, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return true;
        // from here to DONE the launch stays on the board
        if (copied != ticket >> 32) {
            const word *from = (const word *)b[18];
            for (word k = 0; k < b[19]; ++k) arguments[k] = from[k];
            copied = ticket >> 32;
        }
        Bounds bounds = *(const Bounds *)b[17];
        const word begin = b[20] * piece / pieces, end = b[20] * (piece + 1) / pieces;
        bounds.shape[0] = (wp::uint32)(end - begin);
        bounds.size = end - begin;
        *(wp::int32 *)arguments = (wp::int32)begin;  // `first`
        ((Entry)b[16])(&bounds, arguments);
        __atomic_fetch_add(b + 8, 1, __ATOMIC_RELEASE);
        return true;
    };
""".replace("ARGUMENT_WORDS", str(ARGUMENT_WORDS))

_SERVE = (
    _COMMON
    + """
    for (int idle = 0; idle < idle_spins; ++idle) {
        if (take()) {
            idle = 0;
            continue;
        }
        PLIANT_PAUSE();
        if (idle % SPINS_A_TURN == SPINS_A_TURN - 1 && yield_address) ((Yield)yield_address)();
    }
    __atomic_store_n(awake.data, (word)0, __ATOMIC_RELEASE);
#endif
""".replace("SPINS_A_TURN", str(SPINS_A_TURN))
)

_RUN = (
    _COMMON
    + """
    const word *t = table.data;
    for (int c = 0; c < count; ++c, t += 6) {
        if (t[5] == 1) {
            ((Entry)t[0])((Bounds *)t[1], (word *)t[2]);
            continue;
        }
        for (int k = 0; k < 5; ++k) b[16 + k] = t[k];
        __atomic_store_n(b + 8, (word)0, __ATOMIC_RELAXED);
        const word number = (wp::uint32)((b[0] >> 32) + 1);
        __atomic_store_n(b, number << 32 | t[5] << 16, __ATOMIC_RELEASE);
        while (take()) {}
        int spins = 0;
        while (__atomic_load_n(b + 8, __ATOMIC_ACQUIRE) != t[5]) {
            PLIANT_PAUSE();
            if (++spins > 2000 && yield_address) ((Yield)yield_address)();
        }
    }
#endif
"""
)


@wp.func_native(_SERVE)
def _serve_board(
    board: wp.array(dtype=wp.uint64),
    awake: wp.array(dtype=wp.uint64),
    idle_spins: wp.int32,
    yield_address: wp.uint64,
): ...


@wp.func_native(_RUN)
def _run_table(
    board: wp.array(dtype=wp.uint64),
    table: wp.array(dtype=wp.uint64),
    count: wp.int32,
    yield_address: wp.uint64,
): ...


@wp.kernel
def _serve(
    first: wp.int32,
    board: wp.array(dtype=wp.uint64),
    awake: wp.array(dtype=wp.uint64),
    idle_spins: wp.int32,
    yield_address: wp.uint64,
):
    _serve_board(board, awake, idle_spins, yield_address)


@wp.kernel
def _run(
    first: wp.int32,
    board: wp.array(dtype=wp.uint64),
    table: wp.array(dtype=wp.uint64),
    count: wp.int32,
    yield_address: wp.uint64,
):
    _run_table(board, table, count, yield_address)


class _Form:
    """How the arguments of a kernel are laid out for given types; made once, checked by Warp."""

    def __init__(self, kernel: Any, inputs: Sequence[Any]):
        with loading(kernel, "cpu"):
            command: Any = wp.launch(
                kernel, dim=1, inputs=list(inputs), device="cpu", record_cmd=True
            )
        command.fwd_args = None  # a form outlives the arrays it was made from
        self._command = command  # keeps the compiled module loaded
        self._turn = Lock()  # the command is one for all threads
        self.labels = [a.label for a in kernel.adj.args]
        fields = zip(self.labels, map(type, command.params[1:]), strict=True)
        self.layout = type("Arguments", (ctypes.Structure,), {"_fields_": list(fields)})
        self.size = (ctypes.sizeof(self.layout) + 7) // 8
        assert self.size <= ARGUMENT_WORDS, kernel.key
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

    def held(self, index: int, value: Any) -> Any:
        """What the layout holds for an argument."""
        kind = type(value)
        if kind is wp.array:
            return value.ctype or value.__ctype__()
        if kind is int or kind is float:
            return value
        pack = getattr(value, "__ctype__", None)
        if pack is not None:
            return pack()
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
        self._arguments = form.layout(*[form.held(k, value) for k, value in enumerate(inputs)])
        self._count, self._bounds = count, form.bounds(count)
        self._references = ctypes.byref(self._bounds), ctypes.byref(self._arguments)

    def words(self, pieces: int) -> tuple[int, ...]:
        """Entry point, bounds, arguments and their words, items, and pieces to cut them into."""
        return (
            self._form.address,
            ctypes.addressof(self._bounds),
            ctypes.addressof(self._arguments),
            self._form.size,
            self._count,
            pieces,
        )

    def set(self, index: int, value: Any) -> None:
        """Change argument `index`; its type stays."""
        setattr(self._arguments, self._form.labels[index], self._form.held(index, value))

    def run(self) -> None:
        """Launch in this thread."""
        self._form.entry(*self._references)


class _Helper:
    """A thread that takes pieces while there are any, and sleeps on a lock otherwise."""

    def __init__(self, board: wp.array, awake: np.ndarray):
        self._awake = awake
        self._wake = Lock()
        self._wake.acquire()
        self._serve = Call(
            _serve, 1, [0, board, _as_words(awake), IDLE_SPINS, _yield_address()]
        )  # fmt: skip
        Thread(target=self._loop, daemon=True, name="pliant").start()

    def _loop(self) -> None:
        while True:
            self._wake.acquire()
            self._serve.run()

    def rouse(self) -> None:
        """Wake it if it sleeps; only the helper itself clears the word, only the caller sets it."""
        if self._awake[0] == 0:
            self._awake[0] = 1
            self._wake.release()


class Crew:
    """The caller's thread and its helpers."""

    def __init__(self, size: int):
        """size: threads in all, the caller's own among them."""
        self.size = size
        count = BOARD + LINE * (size - 1)
        self._memory = np.zeros(count + LINE, np.uint64)
        skip = (-self._memory.ctypes.data % (8 * LINE)) // 8  # whole cache lines
        words = self._memory[skip : skip + count]
        self._board = _as_words(words[:BOARD])
        lines = words[BOARD:].reshape(size - 1, LINE)
        self._helpers = [_Helper(self._board, line) for line in lines]
        self._turn = Lock()
        self._row = np.zeros(ROW, np.uint64)
        self._row_call = self.call(self._row)

    def call(self, table: np.ndarray) -> Call:
        """The launch that works through a table (see `rows`)."""
        count = len(table) // ROW
        return Call(_run, 1, [0, self._board, _as_words(table), count, _yield_address()])

    def run(self, call: Call) -> None:
        """Work through a table; simulations in several threads of a program take turns."""
        with self._turn:
            for helper in self._helpers:
                helper.rouse()
            call.run()

    def run_once(self, call: Call, pieces: int) -> None:
        """Run one launch, cut into pieces."""
        with self._turn:
            self._row[:] = call.words(pieces)
            for helper in self._helpers:
                helper.rouse()
            self._row_call.run()


def _as_words(memory: np.ndarray) -> wp.array:
    return wp.array(memory, dtype=wp.uint64, device="cpu", copy=False)


def rows(launches: Sequence[tuple[Call, int]]) -> np.ndarray:
    """The table of a list of launches, each with the pieces it is cut into."""
    return np.array([call.words(pieces) for call, pieces in launches], np.uint64).reshape(-1)


@cache
def _yield_address() -> int:
    """Where the C library's sched_yield is; 0 where there is none."""
    function = getattr(ctypes.CDLL(None), "sched_yield", None) if os.name == "posix" else None
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


_crews: dict[int, Crew] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crews.clear)  # threads do not survive a fork


def crew(size: int) -> Crew:
    """The crew of that size, made once."""
    if size not in _crews:
        _crews[size] = Crew(size)
    return _crews[size]
