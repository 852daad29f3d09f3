"""`pliant fit-curve`: a test machine's curves fitted by laws, without a mesh."""

import math
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from pliant.app.terminal.console import JsonOption, answer, command
from pliant.core.errors import BadInput

UnitsOption = Annotated[
    str | None,
    typer.Option("--units", help="Of the stress: Pa, kPa, MPa, psi ...; a header may state it."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit-curve")(fit_files)


@command
def fit_files(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Text or CSV with columns stretch and stress."),
    ],
    materials: Annotated[
        str | None,
        typer.Option("--materials", metavar="A,B,C", help="Laws to fit; by default six of rubber."),
    ] = None,
    loading: Annotated[
        str | None,
        typer.Option(
            "--loading",
            help="uniaxial, equibiaxial or pure-shear, for all files or one for each (a,b,c); by "
            "default from UT, ET or PS in the file's name.",
        ),
    ] = None,
    units: UnitsOption = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", help="What the columns hold, such as stress,stretch or strain%,stress."
        ),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(
            "--error", help="Of a stress: 2% (relative) or 10kPa (absolute); 2% if not given."
        ),
    ] = None,
    compressible: Annotated[
        bool,
        typer.Option("--compressible", help="Fit the volume's terms too: the sides are free."),
    ] = False,
    poisson_ratio: Annotated[
        float,
        typer.Option("--poisson-ratio", help="For the volume's terms where they are not fitted."),
    ] = 0.499,
    positive: Annotated[
        bool, typer.Option("--positive", help="No parameter may be negative.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Leave curves.png, fit.json and law.toml here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit laws to the stress and stretch that a test machine recorded in FILE, and rank them."""
    from pliant.inverse.curves.curve_fit import RUBBERS, fit_curve
    from pliant.observe.curve_files import load_curve

    folder = Path(out) if out is not None else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    kinds = _loadings(loading, len(files))
    curves = [
        load_curve(f, loading=kind, units=units, columns=columns)
        for f, kind in zip(files, kinds, strict=True)
    ]
    begun = perf_counter()
    fits = fit_curve(
        curves, RUBBERS if materials is None else materials, units=units, error=error,
        incompressible=not compressible, poisson_ratio=poisson_ratio, all_positive=positive,
    )  # fmt: skip
    seconds = perf_counter() - begun
    result = curve_result(fits, seconds)
    lines = [*str(fits).splitlines(), "", f"fitted in {seconds:.2g} s"]
    if folder is not None:
        from pliant.app.pictures.curve_pictures import draw_curves
        from pliant.core.files import write_json, write_text

        folder.mkdir(parents=True, exist_ok=True)
        draw_curves(fits, folder / "curves.png")
        result["out"] = str(folder)
        result["picture"] = str(folder / "curves.png")
        names = ["curves.png", "fit.json"]
        if result["law"] is not None:
            import tomli_w

            write_text(folder / "law.toml", tomli_w.dumps({"law": result["law"]}))
            names.append("law.toml (for a scene file)")
        write_json(folder / "fit.json", result)
        lines.append(f"files in {folder}: {', '.join(names)}")
    answer(result, lines, as_json=as_json)


def _loadings(text: str | None, count: int) -> list[str | None]:
    if text is None:
        return [None] * count
    words = [w.strip() for w in text.split(",")]
    if len(words) == 1:
        return [words[0]] * count
    if len(words) != count:
        raise BadInput(f"--loading names {len(words)} kinds for {count} files: one for each.")
    return list(words)


def curve_result(fits: Any, seconds: float) -> dict[str, Any]:
    """The fits as plain numbers; what is not finite becomes null."""
    from pliant.fem.laws.tables import describe_law

    def number(x: float) -> float | None:
        return float(x) if math.isfinite(x) else None

    laws = [
        {
            "law": f.name, "chi2": number(f.chi2), "reduced_chi2": number(f.reduced),
            "aicc": number(f.aicc), "bic": number(f.bic), "points": f.count,
            "parameters": {} if f.law is None else {
                n: {
                    "value": float(v), "sigma": number(f.sigma.get(n, math.inf)),
                    "unit": f.law.energy.units.get(n, ""), "remark": f.remarks.get(n, ""),
                }
                for n, v in f.law.values.items()
            },
            "r_squared": [number(x) for x in f.r_squared],
            "misfit": [number(x) for x in f.misfit],
            "shear_modulus": number(f.shear_modulus), "shear_sigma": number(f.shear_sigma),
            "youngs_modulus": number(f.youngs_modulus), "unstable": list(f.unstable),
            "starts": f.starts, "starts_that_agree": f.agreeing,
            "advice": list(f.advice), "reason": f.reason,
        }
        for f in fits
    ]  # fmt: skip
    return {
        "curves": [{"name": c.name, "loading": c.loading, "points": len(c)} for c in fits.curves],
        "error": str(fits.error),
        "incompressible": fits.incompressible,
        "best": fits.best.name,
        "law": describe_law(fits.best.law),
        "materials": laws,
        "seconds": seconds,
    }
