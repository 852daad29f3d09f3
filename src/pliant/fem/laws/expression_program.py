"""Expressions as one NumPy function, for the same expressions at many numbers.

`expression.evaluate` walks the graph and looks every node up; a fit asks thousands of times. Here
the walk is done once: the graph becomes a list of operations over numbered places. Places that do
not depend on arrays stay plain numbers, so a law's constants cost next to nothing.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.fem.laws.expression import Expression, evaluate, topological, variable

_PLAIN: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "neg": operator.neg, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
}  # fmt: skip
_SHORT_POWERS: dict[float, Callable[..., Any]] = {2.0: lambda x: x * x, -1.0: lambda x: 1.0 / x}


@dataclass(frozen=True)
class Program:
    """Call it with the variables by name; returns the values of the roots.

    inputs: (place, name) of the variables; fixed: the numbers; steps: (place, rule, arguments).
    """

    size: int
    inputs: tuple[tuple[int, str], ...]
    fixed: tuple[tuple[int, Any], ...]
    steps: tuple[tuple[int, Callable[..., Any], tuple[int, ...]], ...]
    roots: tuple[int, ...]

    def __call__(self, values: Mapping[str, Any]) -> list[Any]:
        """Values of the roots."""
        at: list[Any] = [None] * self.size
        for place, name in self.inputs:
            at[place] = values[name]
        for place, number in self.fixed:
            at[place] = number
        for place, rule, args in self.steps:
            at[place] = rule(at[args[0]], at[args[1]]) if len(args) == 2 else rule(at[args[0]])
        return [at[k] for k in self.roots]


def compiled_program(roots: Sequence[Expression]) -> Program:
    """The program that computes these expressions."""
    order = topological(roots)
    place = {id(n): k for k, n in enumerate(order)}
    inputs, fixed, steps = [], [], []
    for k, n in enumerate(order):
        if n.op == "var":
            inputs.append((k, n.value))
        elif n.op == "const":
            fixed.append((k, n.value))
        else:
            steps.append((k, _rule(n), tuple(place[id(a)] for a in n.args)))
    return Program(
        len(order), tuple(inputs), tuple(fixed), tuple(steps), tuple(place[id(r)] for r in roots)
    )


def _rule(n: Expression) -> Callable[..., Any]:
    """What a node does to its arguments, as `evaluate` does it."""
    if n.op in _PLAIN:
        return _PLAIN[n.op]
    if n.op == "pow":
        c = n.value
        return _SHORT_POWERS.get(c, lambda x: x**c)
    alone = Expression(n.op, tuple(variable(f"_{i}") for i in range(len(n.args))), n.value)
    return lambda *a: evaluate([alone], {f"_{i}": v for i, v in enumerate(a)})[0]
