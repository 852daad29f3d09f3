"""`pliant reconstruct SCENE --materials a,b,c`: laws ranked by evidence, with their curves."""

from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.terminal.console import note
from pliant.core.errors import BadInput, SolverFailure
from pliant.core.files import write_json
from pliant.fem.laws import find_law
from pliant.fem.laws.tables import describe_law

STRETCHES = np.linspace(0.7, 1.6, 19)


def law_names(text: str) -> list[str]:
    """The laws named by --materials, all of them known."""
    names = [n.strip() for n in text.split(",") if n.strip()]
    if not names:
        raise BadInput("--materials needs names, for example neo-hookean,mooney-rivlin.")
    for name in names:
        find_law(name)
    return names


def choose_material(
    scene, seen, names: list[str], folder: Path, *, cost: str, loss: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Fit all laws, write materials.json and materials.png, return the result."""
    from pliant.inverse.fitting.model_choice import compare_laws, curve_table, ranking_table

    ranked = compare_laws(
        scene, seen, names, cost=cost, loss=loss, on_law=lambda n: note(f"fitting {n}"), **options
    )
    best = ranked[0]
    if best.fit is None or best.law is None:
        raise SolverFailure(f"None of the laws could be fitted; {best.name}: {best.reason}")
    curves = curve_table(ranked, STRETCHES)
    result: dict[str, Any] = {
        "status": "finished",
        "out": str(folder),
        "materials": [
            {
                "law": c.name, "rms": c.rms, "aic": c.aic, "bic": c.bic, "residuals": c.count,
                "values": {} if c.law is None else {n: float(v) for n, v in c.law.values.items()},
                "sigma": {} if c.fit is None else c.fit.sigma,
                "reason": c.reason,
            }
            for c in ranked
        ],
        "best": best.name,
        "law": describe_law(best.law),
        "unknowns": {
            n: {"truth": None, "start": best.fit.start[n], "value": best.fit.values[n],
                "sigma": best.fit.sigma[n]}
            for n in best.fit.labels
        },
        "advice": list(best.fit.advice),
        "curves": curves,
        "table": ranking_table(ranked),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    result["picture"] = str(folder / "materials.png")
    draw_curves(curves, folder / "materials.png")
    write_json(folder / "materials.json", result)
    return result


def ranking_lines(result: dict[str, Any]) -> list[str]:
    """The table, the winner's parameters with their error bars, and where the picture is."""
    rows = result["unknowns"].items()
    return [
        *result["table"].splitlines(),
        f"{result['best']} is best: "
        + ", ".join(f"{n} {row['value']:.5g} +- {row['sigma']:.2g}" for n, row in rows),
        *(f"- {line}" for line in result["advice"]),
        f"picture: {result['picture']}",
    ]


def draw_curves(curves: dict[str, list[float]], path: Path) -> None:
    """Uniaxial stress over stretch of every law."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for name, stress in curves.items():
        if name != "stretch":
            axes.plot(curves["stretch"], stress, label=name, linewidth=1.4)
    axes.axhline(0.0, color="#bbbbbb", linewidth=0.7)
    axes.set_xlabel("stretch")
    axes.set_ylabel("nominal stress [Pa]")
    axes.set_title("Fitted laws, uniaxial")
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
