"""Multicomplex numbers of any order as kernel types, with the rules of seed 004, section 4.5.

`Dual1` is a + b i with b infinitesimal; `Dual2` is a + b i_1 + c i_2 + d i_1 i_2; `kernel_type(n)`
makes Dual n. Operators and elementary functions drop what is of higher order in the step, so a step
of 1 gives the derivative itself (the step's size cancels) and no number is ever tiny. A module
whose kernels use + - * / on them imports add, sub, mul and div as well: Warp looks operators up by
these names. They and the step_... functions are overloaded, one name for every order.

The code of an order is written out from three rules, S being the set of a coefficient's units:

    (x y)_S = sum over T in S of x_T y_(S - T)
    (x / y)_S = (x_S - sum over T in S, not empty, of y_T (x / y)_(S - T)) / y_0
    f(x)_S = sum over the partitions of S of f^(blocks)(x_0) product over blocks B of x_B
"""

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import warp as wp

from pliant.core.errors import BadInput

LETTERS = "abcdefghijklmnop"
FUNCTIONS = (
    "add", "sub", "mul", "div", "chained", "step_exp", "step_log", "step_sqrt", "step_sin",
    "step_cos", "step_pow",
)  # fmt: skip

_space: dict[str, Any] = {"wp": wp, "__name__": __name__}


@dataclass(frozen=True)
class KernelType:
    """Numbers with `order` units: the struct, how to make one, and its overloaded functions.

    make: from all coefficients; plain: a number without a step; stepped: x + i_1 + ... + i_n.
    """

    order: int
    struct: Any
    make: Any
    plain: Any
    stepped: Any
    add: Any
    sub: Any
    mul: Any
    div: Any
    chained: Any
    exp: Any
    log: Any
    sqrt: Any
    sin: Any
    cos: Any
    pow: Any

    def field(self, units: Sequence[int]) -> str:
        """Name of the coefficient of a product of units, which count from 1."""
        return _names(self.order)[sum(1 << (u - 1) for u in set(units))]


@lru_cache(maxsize=16)
def kernel_type(order: int) -> KernelType:
    """The kernel type of an order: 2^order coefficients."""
    if not 1 <= order <= 6:
        raise BadInput(f"Kernel types have an order from 1 to 6, not {order}.")
    text = _source(order)
    filename = f"<pliant dual{order}>"
    # inspect.getsource, which Warp reads functions with, finds generated text here
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), _space)  # our own text; known names become overloads
    own = (f"{name}{order}" for name in ("Dual", "dual", "plain", "stepped"))
    return KernelType(order, *(_space[name] for name in (*own, *FUNCTIONS)))


def _names(order: int) -> list[str]:
    """Coefficients by the bits of their units: a b c d ..., or a k1 k2 ... if letters run out."""
    size = 1 << order
    return list(LETTERS[:size]) if size <= 16 else ["a", *(f"k{m}" for m in range(1, size))]


def _parts(units: int) -> Iterator[int]:
    """All sets of units within one, the empty one last."""
    part = units
    while part:
        yield part
        part = (part - 1) & units
    yield 0


def _partitions(units: int) -> Iterator[list[int]]:
    """All ways to share out a set of units among blocks."""
    if not units:
        yield []
        return
    lowest = units & -units
    for rest in _parts(units ^ lowest):
        for others in _partitions(units ^ lowest ^ rest):
            yield [lowest | rest, *others]


def _source(order: int) -> str:
    """Text of an order's struct and functions."""
    names, sets, kind = _names(order), range(1 << order), f"Dual{order}"
    slopes = [f"f{k}" for k in range(order + 1)]
    pair = f"x: {kind}, y: {kind}"
    zero, one, half = (f"wp.float64({x})" for x in (0.0, 1.0, 0.5))

    def function(name: str, arguments: str, lines: Sequence[str]) -> str:
        body = "".join(f"    {line}\n" for line in lines)
        return f"@wp.func\ndef {name}({arguments}) -> {kind}:\n{body}\n\n"

    def typed(arguments: Sequence[str]) -> str:
        return ", ".join(f"{a}: wp.float64" for a in arguments)

    def made(coefficients: Sequence[str]) -> str:
        return f"return dual{order}({', '.join(coefficients)})"

    def product(s: int) -> str:
        return " + ".join(f"x.{names[t]} * y.{names[s ^ t]}" for t in _parts(s))

    def quotient(s: int) -> str:
        known = "".join(f" - y.{names[t]} * q{s ^ t}" for t in _parts(s) if t)
        return f"(x.{names[s]}{known}) * r"

    def chain(s: int) -> str:
        terms: dict[int, list[str]] = {}
        for blocks in _partitions(s):
            terms.setdefault(len(blocks), []).append(" * ".join(f"x.{names[b]}" for b in blocks))
        return " + ".join(f"f{k} * ({' + '.join(t)})" for k, t in terms.items()) if s else "f0"

    def elementary(name: str, lines: list[str], values: Sequence[str], more: str = "") -> str:
        call = f"return chained(x, {', '.join(values)})"
        return function(f"step_{name}", f"x: {kind}{more}", [*lines, call])

    def powers(value: str, exponent: str) -> list[str]:
        """One power only (eq. 4.10)."""
        falling = [f"f{k + 1} = ({exponent} - wp.float64({k})) * f{k} * r" for k in range(order)]
        return [f"r = {one} / x.a", f"f0 = {value}", *falling]

    fields = "".join(f"    {n}: wp.float64\n" for n in names)
    fill = [f"z = {kind}()", *(f"z.{n} = {n}" for n in names), "return z"]
    units = [one if s.bit_count() == 1 else zero for s in sets]
    divide = [f"r = {one} / y.a", *(f"q{s} = {quotient(s)}" for s in sets)]
    logarithm = [f"r = {one} / x.a", "f0 = wp.log(x.a)", "f1 = r"]
    logarithm += [f"f{k + 1} = -wp.float64({k}) * f{k} * r" for k in range(1, order)]
    circle, turn = ["s = wp.sin(x.a)", "c = wp.cos(x.a)"], ("s", "c", "-s", "-c")
    return "".join((
        f"@wp.struct\nclass {kind}:\n{fields}\n\n",
        function(f"dual{order}", typed(names), fill),
        function(f"plain{order}", typed("a"), [made(["a", *[zero] * (len(names) - 1)])]),
        function(f"stepped{order}", typed("a"), [made(["a", *units[1:]])]),
        function("add", pair, [made([f"x.{n} + y.{n}" for n in names])]),
        function("sub", pair, [made([f"x.{n} - y.{n}" for n in names])]),
        function("mul", pair, [made([product(s) for s in sets])]),
        function("div", pair, [*divide, made([f"q{s}" for s in sets])]),
        function("chained", f"x: {kind}, {typed(slopes)}", [made([chain(s) for s in sets])]),
        elementary("exp", ["e = wp.exp(x.a)"], ["e"] * (order + 1)),
        elementary("log", logarithm, slopes),
        elementary("sqrt", powers("wp.sqrt(x.a)", half), slopes),
        elementary("sin", circle, [turn[k % 4] for k in range(order + 1)]),
        elementary("cos", circle, [turn[(k + 1) % 4] for k in range(order + 1)]),
        elementary("pow", powers("wp.pow(x.a, c)", "c"), slopes, ", c: wp.float64"),
    ))  # fmt: skip


_first, _second = kernel_type(1), kernel_type(2)
Dual1, dual1, Dual2, dual2 = _first.struct, _first.make, _second.struct, _second.make
add, sub, mul, div, chained = (_space[name] for name in FUNCTIONS[:5])
step_exp, step_log, step_sqrt, step_sin, step_cos, step_pow = (_space[n] for n in FUNCTIONS[5:])
