"""From a law's record to functions that kernels call: energy, stress, Hessian, and by parameters.

Isotropic energies are compiled as functions of three stretches: three slopes and six second slopes,
whatever the law. Others as functions of the nine entries of F. Which source a law got follows from
its expressions only, so two laws with the same energy share one compiled module.
"""

import hashlib
import linecache
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import warp as wp

from pliant.fem.laws.dilatation import PRESSURE, MeanEnergy
from pliant.fem.laws.expression import Expression, constant, gradient, variable
from pliant.fem.laws.kernel_text import source
from pliant.fem.laws.law import Energy

mat99d = wp.types.matrix(shape=(9, 9), dtype=wp.float64)


@wp.func
def law_sign(x: wp.float64) -> wp.float64:  # pyright: ignore[reportInvalidTypeForm]
    """Sign of x, 1 at 0."""
    if x >= wp.float64(0.0):
        return wp.float64(1.0)
    return wp.float64(-1.0)


@wp.func
def law_step(x: wp.float64) -> wp.float64:  # pyright: ignore[reportInvalidTypeForm]
    """1 where x >= 0, else 0."""
    if x >= wp.float64(0.0):
        return wp.float64(1.0)
    return wp.float64(0.0)


@dataclass(frozen=True)
class LawFunctions:
    """Warp functions of one energy, in one Warp module.

    Of stretches s (vec3d) for isotropic energies, of F (mat33d) for others; p: (cells, parameters).
    energy, slopes, curvatures; change: of the slopes by a change of the parameters; pull: its
    transpose, added to a row of an array. stress: of F (mat33d) where that is cheaper than through
    the stretches, else None. invariant_*: slopes and curvatures by (I1, I2, J), where the energy is
    written in them; nonzero: which of psi_2, psi_11, psi_12, psi_1J, psi_22, psi_2J, psi_JJ, psi_J
    exist. averaged: of psi - U(J) + P J (fem.laws.dilatation); `stress` is that of psi alone.
    """

    isotropic: bool
    module: str
    parameter_count: int
    energy: Any
    slopes: Any
    curvatures: Any
    change: Any
    pull: Any
    stress: Any | None
    whole_energy: Any | None
    invariant_slopes: Any | None
    invariant_curvatures: Any | None
    nonzero: tuple[bool, ...]
    averaged: bool


def _function(lines: list[str], name: str, signature: str, result: str, returned: str) -> str:
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    arrow = f" -> {result}" if result else ""
    return f"def {name}({signature}){arrow}:\n{body}\n{returned}\n"


def _loads(parameters: tuple[str, ...], inputs: list[str], lines: list[str]) -> list[str]:
    text = " ".join(lines) + " "
    names = {f"p_{n}": f"p_{n} = p[c, {j}]" for j, n in enumerate(parameters)}
    words = set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
    return inputs + [load for name, load in names.items() if name in words]


def _module_source(energy: Energy | MeanEnergy, floor: float) -> tuple[str, bool, tuple[bool, ...]]:
    isotropic = energy.isotropic
    parameters = energy.parameters
    known = [n for n in parameters if n != PRESSURE]  # P follows from the motion
    p = "p: wp.array2d(dtype=wp.float64), c: wp.int32"
    if isotropic:
        names = ["s0", "s1", "s2"]
        psi = energy.continued(floor)
        argument, inputs = "s: wp.vec3d", [f"s{i} = s[{i}]" for i in range(3)]
        vector, matrix = "wp.vec3d", "wp.mat33d"
    else:
        names = [f"F{i}{j}" for i in range(3) for j in range(3)]
        psi = energy.full
        assert psi is not None
        argument = "F: wp.mat33d"
        inputs = [f"F{i}{j} = F[{i}, {j}]" for i in range(3) for j in range(3)]
        vector, matrix = "wp.mat33d", "mat99d"
    variables = [variable(n) for n in names]
    g = gradient(psi, variables)
    H = [gradient(x, variables) for x in g]
    count = len(names)
    parts = []

    def write(name, roots: list[Expression], signature, result, returned, extra=()):
        lines, values = source(roots)
        needed = _loads(parameters, inputs, [*lines, *values, *extra])
        parts.append(_function(needed + lines, name, signature, result, returned(values)))

    plain = f"{argument}, {p}"
    write("energy", [psi], plain, "wp.float64", lambda v: f"    return {v[0]}")
    write("slopes", g, plain, vector, lambda v: f"    return {vector}({', '.join(v)})")
    flat = [H[i][j] if i <= j else H[j][i] for i in range(count) for j in range(count)]
    write("curvatures", flat, plain, matrix, lambda v: f"    return {matrix}({', '.join(v)})")
    by = [[gradient(x, [variable(f"p_{n}")])[0] for n in known] for x in g]
    changes = [variable(f"d_{n}") for n in known]
    total = []
    for row in by:
        t: Expression = constant(0.0)
        for d, slope in zip(changes, row, strict=True):
            t = t + d * slope
        total.append(t)
    lines, values = source(total)
    needed = _loads(parameters, inputs, [*lines, *values])
    needed += [f"d_{n} = d[c, {j}]" for j, n in enumerate(known)]
    parts.append(
        _function(
            needed + lines,
            "change",
            f"{plain}, d: wp.array2d(dtype=wp.float64)",
            vector,
            f"    return {vector}({', '.join(values)})",
        )  # fmt: skip
    )
    flat_by = [x for row in by for x in row]
    lines, values = source(flat_by)
    needed = _loads(parameters, inputs, [*lines, *values])
    at = (
        ["y[0]", "y[1]", "y[2]"]
        if isotropic
        else [f"y[{i}, {j}]" for i in range(3) for j in range(3)]
    )
    adds = []
    n = len(known)
    for j in range(n):
        terms = " + ".join(f"{at[i]} * ({values[i * n + j]})" for i in range(count))
        adds.append(f"    out[c, {j}] = out[c, {j}] + weight * ({terms})")
    signature = f"{plain}, y: {vector}, weight: wp.float64, out: wp.array2d(dtype=wp.float64)"
    parts.append(_function(needed + lines, "pull", signature, "", "\n".join(adds)))

    if isotropic and floor == 0.0 and energy.full is not None:
        names = [f"F{i}{j}" for i in range(3) for j in range(3)]
        inputs = [f"F{i}{j} = F[{i}, {j}]" for i in range(3) for j in range(3)]
        signature = f"F: wp.mat33d, {p}"
        write(
            "whole_energy", [energy.full], signature, "wp.float64", lambda v: f"    return {v[0]}"
        )
        own = energy.own if isinstance(energy, MeanEnergy) else energy
        if own.stress_code is not None:
            code = [line.strip() for line in own.stress_code.strip().splitlines()]
            loads = [f"p_{m} = p[c, {j}]" for j, m in enumerate(parameters)]
            parts.append(_function(loads + code, "stress", signature, "wp.mat33d", ""))
        else:
            assert own.full is not None
            full = gradient(own.full, [variable(m) for m in names])
            write(
                "stress",
                full,
                signature,
                "wp.mat33d",
                lambda v: f"    return wp.mat33d({', '.join(v)})",
            )
    nonzero: tuple[bool, ...] = ()
    if isotropic and floor == 0.0 and energy.invariant is not None:
        inputs = [f"i{k} = s[{k}]" for k in range(3)]
        signature = f"s: wp.vec3d, {p}"
        by_i = [variable(f"i{k}") for k in range(3)]
        g = gradient(energy.invariant, by_i)
        H = [gradient(x, by_i) for x in g]
        write(
            "invariant_slopes",
            g,
            signature,
            "wp.vec3d",
            lambda v: f"    return wp.vec3d({', '.join(v)})",
        )
        flat = [H[min(i, j)][max(i, j)] for i in range(3) for j in range(3)]
        write(
            "invariant_curvatures",
            flat,
            signature,
            "wp.mat33d",
            lambda v: f"    return wp.mat33d({', '.join(v)})",
        )
        terms = [g[1], H[0][0], H[0][1], H[0][2], H[1][1], H[1][2], H[2][2], g[2]]
        nonzero = tuple(not (t.op == "const" and t.value == 0.0) for t in terms)
    return "\n\n".join(parts), isotropic, nonzero


def _loaded(energy: Energy | MeanEnergy, text: str) -> tuple[dict[str, Any], str]:
    """Names of generated text, and the Warp module they belong to."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    clean = "".join(ch if ch.isalnum() else "_" for ch in energy.name)
    module = f"pliant_law_{clean}_{digest}"
    filename = f"<{module}>"
    # inspect.getsource, which Warp reads functions with, finds generated text here
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    space: dict[str, Any] = {
        "wp": wp, "mat99d": mat99d, "law_sign": law_sign, "law_step": law_step,
        "__name__": module,
    }  # fmt: skip
    exec(compile(text, filename, "exec"), space)  # our own generated text, nothing from outside
    return space, module


def compiled_function(
    energy: Energy | MeanEnergy,
    name: str,
    roots: list[Expression],
    inputs: list[str],
    arguments: str,
    result: str,
) -> tuple[Any, str]:
    """A Warp function of `arguments`, p and c that returns result(roots), and its module."""
    lines, values = source(roots)
    needed = _loads(energy.parameters, inputs, [*lines, *values])
    signature = f"{arguments}, p: wp.array2d(dtype=wp.float64), c: wp.int32"
    returned = f"    return {result}({', '.join(values)})"
    space, module = _loaded(energy, _function(needed + lines, name, signature, result, returned))
    return wp.func(space[name], module=module), module


@lru_cache(maxsize=256)
def law_functions(energy: Energy | MeanEnergy, floor: float = 0.0) -> LawFunctions:
    """Compile (on first use by a kernel) the functions of an energy."""
    text, isotropic, nonzero = _module_source(energy, floor)
    space, module = _loaded(energy, text)

    def made(name: str):
        return wp.func(space[name], module=module) if name in space else None

    return LawFunctions(
        isotropic, module, len(energy.parameters), made("energy"), made("slopes"),
        made("curvatures"), made("change"), made("pull"), made("stress"), made("whole_energy"),
        made("invariant_slopes"), made("invariant_curvatures"), nonzero,
        isinstance(energy, MeanEnergy),
    )  # fmt: skip
