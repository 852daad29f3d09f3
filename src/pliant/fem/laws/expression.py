"""Energies as expressions: what an `@energy` function computes, recorded and differentiated.

Calling an energy with `Expression` numbers records a graph in which equal nodes are one node.
`gradient` differentiates it backwards into another graph (the chain rule of seed 004, eq. 4.16,
with each elementary function's slope in the simplified form of section 4.5.1); `kernel_text`
writes a graph as code. sqrt(x^2) is |x|, whose slope at 0 is that of x > 0, as a complex step finds
it; energies like eq. 4.39 stay finite at a kink, and `rounded` has none (dynamics.newton).
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pliant.core.errors import BadInput

_table: dict[tuple, "Expression"] = {}
ROOT_FLOOR = 1e-150
"""Smallest root that a slope divides by: 0 / 0 at a kink becomes 0."""

GENERIC = {
    "s0": 1.3, "s1": 0.9, "s2": 1.1, "i0": 3.71, "i1": 4.3939, "i2": 1.287,
    "F00": 2.6 / 3, "F01": -0.3, "F02": 2.2 / 3, "F10": 2.6 / 3, "F11": 0.6, "F12": -1.1 / 3,
    "F20": -1.3 / 3, "F21": 0.6, "F22": 2.2 / 3,
}  # fmt: skip
"""One deformation in all the names an energy may have it by: as large as arguments of kinks are."""


class Expression:
    """A node: an operation over other nodes, a variable or a constant."""

    __slots__ = ("args", "number", "op", "value")
    __array_priority__ = 1000.0

    def __init__(self, op: str, args: tuple = (), value: Any = None):
        self.op, self.args, self.value = op, args, value
        self.number = len(_table)

    def __repr__(self) -> str:
        if self.op == "const":
            return f"{self.value:g}"
        return self.value if self.op == "var" else f"{self.op}{self.args!r}"

    def __add__(self, other):
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other):
        return add(self, neg(_wrap(other)))

    def __rsub__(self, other):
        return add(_wrap(other), neg(self))

    def __mul__(self, other):
        return multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return divide(self, other)

    def __rtruediv__(self, other):
        return divide(_wrap(other), self)

    def __neg__(self):
        return neg(self)

    def __pos__(self):
        return self

    def __pow__(self, exponent):
        return power(self, exponent)

    def __rpow__(self, base):
        return unary("exp", multiply(self, unary("log", _wrap(base))))

    def __abs__(self):
        return unary("abs", self)

    def __bool__(self):
        raise BadInput(
            "An energy cannot branch with `if` on a number it is given: use np.maximum, "
            "np.minimum or abs, so that the kernel can follow both branches."
        )

    __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: self.__bool__()

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        """np.log(x) and the like, elementwise over arrays of expressions as well."""
        if method != "__call__" or ufunc not in _UFUNCS:
            return NotImplemented
        rule = _UFUNCS[ufunc]
        if any(isinstance(x, np.ndarray) for x in inputs):
            return np.vectorize(rule, otypes=[object])(*inputs)
        return rule(*inputs)

    # object arrays call these by name: np.exp(array of expressions)
    def exp(self):
        """e^x."""
        return unary("exp", self)

    def log(self):
        """ln x."""
        return unary("log", self)

    def sqrt(self):
        """Square root."""
        return unary("sqrt", self)


def _make(op: str, args: tuple, value: Any = None) -> Expression:
    key = (op, tuple(id(a) for a in args), value)
    found = _table.get(key)
    if found is None:
        found = _table[key] = Expression(op, args, value)
    return found


def constant(value: float) -> Expression:
    """A number."""
    return _make("const", (), float(value))


def variable(name: str) -> Expression:
    """A named input."""
    return _make("var", (), name)


def _wrap(x: Any) -> Expression:
    if isinstance(x, Expression):
        return x
    try:
        return constant(float(x))
    except (TypeError, ValueError):
        raise BadInput(f"An energy met {type(x).__name__} where it needs a number.") from None


def _is(x: Expression, value: float) -> bool:
    return x.op == "const" and x.value == value


def add(x: Any, y: Any) -> Expression:
    """x + y."""
    x, y = _wrap(x), _wrap(y)
    if x.op == "const" and y.op == "const":
        return constant(x.value + y.value)
    if _is(x, 0.0):
        return y
    if _is(y, 0.0):
        return x
    if x.op == "neg" and y.op == "neg":
        return neg(add(x.args[0], y.args[0]))
    if y.op == "neg":
        if x is y.args[0]:
            return constant(0.0)
        return _make("sub", (x, y.args[0]))
    if x.op == "neg":
        return _make("sub", (y, x.args[0]))
    if x.number > y.number:
        x, y = y, x
    return _make("add", (x, y))


def neg(x: Expression) -> Expression:
    """-x."""
    if x.op == "const":
        return constant(-x.value)
    if x.op == "neg":
        return x.args[0]
    if x.op == "sub":
        return _make("sub", (x.args[1], x.args[0]))
    return _make("neg", (x,))


def multiply(x: Any, y: Any) -> Expression:
    """x y."""
    x, y = _wrap(x), _wrap(y)
    if x.op == "const" and y.op == "const":
        return constant(x.value * y.value)
    for a, b in ((x, y), (y, x)):
        if _is(a, 0.0):
            return constant(0.0)
        if _is(a, 1.0):
            return b
        if _is(a, -1.0):
            return neg(b)
    if x.op == "neg":
        return neg(multiply(x.args[0], y))
    if y.op == "neg":
        return neg(multiply(x, y.args[0]))
    if x.number > y.number:
        x, y = y, x
    if x.op == "const" and y.op == "mul" and y.args[0].op == "const":
        return multiply(constant(x.value * y.args[0].value), y.args[1])
    return _make("mul", (x, y))


def divide(x: Any, y: Any) -> Expression:
    """x / y."""
    x, y = _wrap(x), _wrap(y)
    if y.op == "const":
        return (
            multiply(x, constant(1.0 / y.value)) if x.op != "const" else constant(x.value / y.value)
        )
    if _is(x, 0.0):
        return constant(0.0)
    if x.op == "neg":
        return neg(divide(x.args[0], y))
    return _make("div", (x, y))


def power(x: Any, exponent: Any) -> Expression:
    """x^c."""
    x = _wrap(x)
    if isinstance(exponent, Expression) and exponent.op != "const":
        return unary("exp", multiply(exponent, unary("log", x)))
    c = float(exponent.value if isinstance(exponent, Expression) else exponent)
    if x.op == "const":
        return constant(x.value**c)
    if c == 0.0:
        return constant(1.0)
    if c == 1.0:
        return x
    if c == 2.0:
        return _make("mul", (x, x))
    if c == 0.5:
        return unary("sqrt", x)
    if x.op == "pow":
        # (y^a)^b = y^(a b) only where y^a > 0, which every non-integer b requires anyway
        if c != int(c):
            return power(x.args[0], x.value * c)
    return _make("pow", (x,), c)


def unary(op: str, x: Any) -> Expression:
    """An elementary function."""
    x = _wrap(x)
    if x.op == "const":
        return constant(_NUMERIC[op](x.value))
    if op == "sqrt" and x.op == "mul" and x.args[0] is x.args[1]:
        return unary("abs", x.args[0])
    if op == "abs" and x.op in ("exp", "abs", "sqrt"):
        return x
    return _make(op, (x,))


def maximum(x: Any, y: Any) -> Expression:
    """The larger one; slopes are those of x where they are equal."""
    x, y = _wrap(x), _wrap(y)
    if x.op == "const" and y.op == "const":
        return constant(max(x.value, y.value))
    return _make("max", (x, y))


def minimum(x: Any, y: Any) -> Expression:
    """The smaller one."""
    return neg(maximum(neg(_wrap(x)), neg(_wrap(y))))


def _step(x):
    return np.where(np.real(x) >= 0.0, 1.0, 0.0)


def _sign(x):
    return np.where(np.real(x) >= 0.0, 1.0, -1.0)


_NUMERIC: dict[str, Callable] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "atan": np.arctan, "abs": lambda x: x * _sign(x), "sign": _sign, "step": _step,
    "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "div": operator.truediv,
}  # fmt: skip

_UFUNCS: dict[Any, Callable] = {
    np.add: add, np.multiply: multiply, np.divide: divide, np.power: power,
    np.subtract: lambda x, y: add(x, neg(_wrap(y))), np.negative: lambda x: neg(_wrap(x)),
    np.exp: lambda x: unary("exp", x), np.log: lambda x: unary("log", x),
    np.sqrt: lambda x: unary("sqrt", x), np.sin: lambda x: unary("sin", x),
    np.cos: lambda x: unary("cos", x), np.tanh: lambda x: unary("tanh", x),
    np.arctan: lambda x: unary("atan", x), np.absolute: lambda x: unary("abs", x),
    np.maximum: maximum, np.minimum: minimum, np.square: lambda x: power(x, 2.0),
}  # fmt: skip


def topological(roots: Sequence[Expression]) -> list[Expression]:
    """All nodes below the roots, arguments before their users."""
    seen: set[int] = set()
    order: list[Expression] = []
    stack = [(r, False) for r in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((a, False) for a in reversed(node.args) if id(a) not in seen)
    return order


def _partials(n: Expression) -> list[Expression]:
    """Slope of a node by each of its arguments."""
    one = constant(1.0)
    op, args = n.op, n.args
    if op == "add":
        return [one, one]
    if op == "sub":
        return [one, constant(-1.0)]
    if op == "mul":
        return [args[1], args[0]]
    if op == "div":
        return [divide(one, args[1]), neg(divide(n, args[1]))]
    if op == "neg":
        return [constant(-1.0)]
    if op == "pow":
        c = n.value
        if c == int(c):
            return [multiply(constant(c), power(args[0], c - 1.0))]
        return [multiply(constant(c), divide(n, args[0]))]  # eq. 4.10: no second power
    if op == "exp":
        return [n]
    if op == "log":
        return [divide(one, args[0])]
    if op == "sqrt":
        return [divide(constant(0.5), maximum(n, constant(ROOT_FLOOR)))]
    if op == "sin":
        return [unary("cos", args[0])]
    if op == "cos":
        return [neg(unary("sin", args[0]))]
    if op == "tanh":
        return [add(one, neg(power(n, 2.0)))]
    if op == "atan":
        return [divide(one, add(one, power(args[0], 2.0)))]
    if op == "abs":
        return [unary("sign", args[0])]
    if op == "max":
        first = unary("step", add(args[0], neg(args[1])))
        return [first, add(one, neg(first))]
    return [constant(0.0) for _ in args]


def gradient(root: Expression, variables: Sequence[Expression]) -> list[Expression]:
    """Derivatives of root by the variables, backwards through the graph."""
    order = topological([root])
    bar: dict[int, Expression] = {id(root): constant(1.0)}
    for n in reversed(order):
        b = bar.get(id(n))
        if b is None or not n.args:
            continue
        for a, slope in zip(n.args, _partials(n), strict=True):
            share = multiply(b, slope)
            bar[id(a)] = add(bar[id(a)], share) if id(a) in bar else share
    zero = constant(0.0)
    return [bar.get(id(v), zero) for v in variables]


def evaluate(roots: Sequence[Expression], inputs: dict[Any, Any]) -> list[Any]:
    """Values of the roots for numbers, arrays or complex arrays; inputs: by name, or by node."""
    values: dict[int, Any] = {}
    for n in topological(roots):
        a = [values[id(x)] for x in n.args]
        if n in inputs:
            v = inputs[n]
        elif n.op == "const":
            v = n.value
        elif n.op == "var":
            v = inputs[n.value]
        elif n.op == "pow":
            v = a[0] ** n.value
        elif n.op == "max":
            v = np.where(np.real(a[0]) >= np.real(a[1]), a[0], a[1])
        else:
            v = _NUMERIC[n.op](*a)
        values[id(n)] = v
    return [values[id(r)] for r in roots]


def rounded(root: Any, share: Expression) -> Any:
    """root with |x| (max likewise) as sqrt(x^2 + e^2), e = share of x at GENERIC, if it has a kink.

    ln^2(1 - |x|) has none: its slope at x = 0 is 0.
    """
    order, kinked = topological([root]) if isinstance(root, Expression) else [], False
    whole: dict[Any, Any] = {n.value: n for n in order if n.op == "var"}
    at = {name: np.array(GENERIC.get(name, 1.0 + 0.1 * i)) for i, name in enumerate(whole)}
    for n in (n for n in order if n.op in ("abs", "max")):
        pair = [*n.args, constant(0.0)][:2]  # |x| is bent where x is 0, the larger where x is y
        with np.errstate(all="ignore"):
            low = np.array(evaluate(pair, at)[1])
            kinked |= bool(abs(evaluate([gradient(root, [n])[0]], {**at, n: low})[0]) > 1e-9)
        x, y = evaluate(pair, whole)
        v = x - y
        v = unary("sqrt", v * v + (share * evaluate([v], {**whole, **GENERIC})[0]) ** 2)
        whole[n] = v if n.op == "abs" else 0.5 * (x + y + v)
    return evaluate([root], whole)[0] if kinked else root
