"""Fitted laws as plain text: a ranking, then each law's parameters with their error bars."""

import numpy as np

from pliant.inverse.curves.curve_fit import CurveFit, CurveFits

_UNITS = ((1e9, "GPa"), (1e6, "MPa"), (1e3, "kPa"), (1.0, "Pa"))


def in_pascals(value: float, digits: int = 4) -> str:
    """A stress with a unit that suits it."""
    size = abs(value)
    factor, unit = next(((f, u) for f, u in _UNITS if size >= f), _UNITS[-1])
    return f"{value / factor:.{digits}g} {unit}"


def with_error(value: float, sigma: float, *, stress: bool) -> str:
    """A value and its error bar, in one unit."""
    if not stress:
        return f"{value:.5g} +- {sigma:.2g}" if np.isfinite(sigma) else f"{value:.5g}"
    size = max(abs(value), 1e-300)
    factor, unit = next(((f, u) for f, u in _UNITS if size >= f), _UNITS[-1])
    bar = f" +- {sigma / factor:.2g}" if np.isfinite(sigma) else ""
    return f"{value / factor:.5g}{bar} {unit}"


def parameter_lines(fit: CurveFit) -> list[str]:
    """One line for each parameter."""
    assert fit.law is not None
    lines = []
    for name, value in fit.law.values.items():
        stress = fit.law.energy.units.get(name, "Pa") == "Pa"
        text = with_error(float(value), fit.sigma.get(name, np.inf), stress=stress)
        remark = fit.remarks.get(name, "")
        lines.append(f"  {name:<8}{text}" + (f"  ({remark})" if remark else ""))
    return lines


def ranking_lines(fits: CurveFits) -> list[str]:
    """A line for each law: chi^2, difference in AICc, quality, initial moduli."""
    best = fits.best.aicc
    lines = [
        f"{'law':<20}{'chi2/dof':>10}{'dAICc':>9}{'R2':>9}{'misfit':>9}{'shear modulus':>16}"
        f"{'Young modulus':>16}"
    ]
    for fit in fits:
        if fit.law is None:
            lines.append(f"{fit.name:<20}{'-':>10}  {fit.reason}")
            continue
        warning = "  UNSTABLE" if fit.unstable else ""
        distance = fit.aicc - best if np.isfinite(best) and np.isfinite(fit.aicc) else np.nan
        lines.append(
            f"{fit.name:<20}{fit.reduced:>10.3g}{distance:>9.1f}{min(fit.r_squared):>9.4f}"
            f"{100.0 * max(fit.misfit):>8.2f}%{in_pascals(fit.shear_modulus):>16}"
            f"{in_pascals(fit.youngs_modulus):>16}{warning}"
        )
    return lines


def fits_table(fits: CurveFits) -> str:
    """The whole text."""
    lines = [f"error: {fits.error}", "", *ranking_lines(fits)]
    for fit in fits:
        if fit.law is not None:
            lines += ["", f"{fit.name}:", *parameter_lines(fit)]
            lines += [f"  - {text}" for text in fit.advice]
    return "\n".join(lines)
