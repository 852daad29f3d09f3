"""Write docs/complex_steps.md and its picture from one run of complex_step.py's measurements.

    python benchmarks/complex_step_page.py

JAX and autograd stand beside where they are installed.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
from complex_step import kink, rational, table_1, table_2, table_3

from pliant.complexstep import derivative
from pliant.core.launch import set_threads

DOCS = Path(__file__).resolve().parent.parent / "docs"

TEXT = """# Derivatives by complex steps

Written by `python benchmarks/complex_step_page.py`; one thread, times in milliseconds, the shortest
of several runs. f'(x) = Im f(x + h i) / h takes no difference (Luo 2020, chapter 4), so h may be
1e-40 and nothing cancels. `pliant.complexstep` has complex and multicomplex numbers of any order as
NumPy arrays, up to order six as kernel types, and tensor functions (inverse, solve, determinant,
polar) through their real form.

```python
from pliant.complexstep import derivative, hessian
derivative(lambda x: np.exp(x) / (x**4 + x**2 + 1), 4.0, order=3)
```

Pliant uses them as a third column of `pliant check-gradients`, for modal derivatives and for the
Hessians of frequency design. Stress and tangent of a law, and products with it along a direction,
come from its recorded energy by the same accelerated rules (section 4.5), which leave no complex
number in the code.

## How exact

Relative error of the derivatives of e^x / (x^4 + x^2 + 1) at 4, where f' = 0.006593183194438:

{accuracy}

![Relative error against the step](images/complex_steps.png)

At x = 1, log^2(1 - sqrt((x - 1)^2)) has the derivatives 0 and 2; the chain rule meets 0 / 0 there:

{kink}

## How fast

x^(1/3), ten million times (Luo 2020, table 4.1):

{first}

A million derivatives of e^x / (x^4 + x^2 + 1) (table 4.2):

{second}

Force and tangent of 10,000 tetrahedra, derived from the energy by the accelerated rules, against
closed forms written by hand (table 4.3; at most 1.5 times is what is asked):

{third}
"""


def exact(order: int) -> float:
    """The true derivative at 4: e^x N / q^(order + 1) with whole-number polynomials."""
    q = np.polynomial.Polynomial([1, 0, 1, 0, 1])
    N = np.polynomial.Polynomial([1])
    for n in range(order):
        N = N * q + N.deriv() * q - (n + 1) * N * q.deriv()
    return float(Fraction(round(N(4))) / Fraction(round(q(4))) ** (order + 1)) * np.exp(4.0)


def errors(steps: np.ndarray) -> dict[str, np.ndarray]:
    """Relative errors over the steps."""
    x, one = 4.0, exact(1)
    forward = [(rational(x + h) - rational(x)) / h for h in steps]
    central = [(rational(x + h) - rational(x - h)) / (2.0 * h) for h in steps]
    found = {"forward difference": (forward, one), "central difference": (central, one)}
    for order, name in ((1, "first"), (2, "second"), (3, "third")):
        values = [float(derivative(rational, x, order=order, step=h)) for h in steps]
        found[f"complex steps, {name} derivative"] = (values, exact(order))
    return {n: np.abs(np.array(v) / true - 1.0) for n, (v, true) in found.items()}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def milliseconds(value: float | None) -> str:
    return "" if value is None else f"{1e3 * value:.3g}"


def draw(steps: np.ndarray, found: dict[str, np.ndarray]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for name, error in found.items():
        axes.loglog(steps, np.maximum(error, 1e-17), ".-", label=name)
    axes.invert_xaxis()
    axes.set_xlabel("step")
    axes.set_ylabel("relative error")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(DOCS / "images" / "complex_steps.png", dpi=120)


def main() -> None:
    """Measure and write."""
    set_threads(1)
    steps = 10.0 ** -np.arange(1.0, 61.0)
    found = errors(steps)
    draw(steps, found)
    small = steps < 0.5e-19
    accuracy = [[name, f"{e.min():.0e}", f"{e[small].max():.0e}"] for name, e in found.items()]
    kinks = [
        [name, *(f"{v + 0.0:g}" for v in values)] if values else [name, "not installed", ""]
        for name, values in kink().items()
    ]
    second = [
        [name, *(milliseconds(row.get(k)) for k in "123")]
        for name, row in table_2().items() if row
    ]  # fmt: skip
    third = []
    for law, rows in table_3().items():
        for name in ("derived", "closed", "JAX", "autograd"):
            if row := rows.get(name):
                third.append([law, name, milliseconds(row["force"]), milliseconds(row["tangent"])])
        ratio = rows["derived / closed"]
        third.append([law, "derived / closed", f"{ratio['force']:.2f}", f"{ratio['tangent']:.2f}"])
    page = TEXT.format(
        accuracy=table(["", "smallest", "largest, steps 1e-20 to 1e-60"], accuracy),
        kink=table(["", "first", "second"], kinks),
        first=table(["", "ms"], [[n, milliseconds(t)] for n, t in table_1().items()]),
        second=table(["", "first", "second", "third"], second),
        third=table(["law", "", "force", "tangent"], third),
    )
    (DOCS / "complex_steps.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
