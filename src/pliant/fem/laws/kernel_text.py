"""An expression as straight-line code of Warp's kernel language."""

from collections.abc import Sequence

from pliant.fem.laws.expression import Expression, topological


def source(roots: Sequence[Expression]) -> tuple[list[str], list[str]]:
    """Kernel code: lines that assign every needed node, and the name or number of each root."""
    name: dict[int, str] = {}
    lines: list[str] = []
    for n in topological(roots):
        a = [name[id(x)] for x in n.args]
        if n.op == "const":
            name[id(n)] = f"wp.float64({n.value!r})"
            continue
        if n.op == "var":
            name[id(n)] = n.value
            continue
        symbol = {"add": "+", "sub": "-", "mul": "*", "div": "/"}.get(n.op)
        if symbol:
            text = f"{a[0]} {symbol} {a[1]}"
        elif n.op == "neg":
            text = f"-{a[0]}"
        elif n.op == "pow":
            text = _power_text(a[0], n.value)
        elif n.op == "max":
            text = f"wp.max({a[0]}, {a[1]})"
        elif n.op == "sign":
            text = f"law_sign({a[0]})"
        elif n.op == "step":
            text = f"law_step({a[0]})"
        else:
            text = f"wp.{n.op}({a[0]})"
        name[id(n)] = f"t{len(lines)}"
        lines.append(f"{name[id(n)]} = {text}")
    return lines, [name[id(r)] for r in roots]


def _power_text(x: str, c: float) -> str:
    if c == int(c) and 0 < abs(c) <= 4:
        product = " * ".join([x] * abs(int(c)))
        return product if c > 0 else f"wp.float64(1.0) / ({product})"
    return f"wp.pow({x}, wp.float64({c!r}))"
