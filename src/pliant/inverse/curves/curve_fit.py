"""A law fitted to a test machine's curves, without a mesh; several laws ranked.

With chi^2 the sum of squared residuals over their stated error, n points and k parameters, laws are
ranked by Akaike's criterion with the correction for few points (Hurvich and Tsai 1989), the size of
the noise being one more unknown:

    AICc = n ln(chi^2 / n) + 2 K + 2 K (K + 1) / (n - K - 1),    K = k + 1;

a difference of 10 is decisive. Error bars are those of the linearised problem, times
sqrt(chi^2 / (n - k)) where the law misses the points by more than their error, so that a wrong law
is not thought to be known well.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Energy, Law, bulk_and_shear
from pliant.fem.laws.specimen import LOADINGS, Specimen, initial_shear_modulus
from pliant.inverse.curves.curve_problem import Coordinates, CurveProblem, StressError, stress_error
from pliant.inverse.curves.curve_starts import curve_starts
from pliant.observe.curve_files import Curve, load_curve

log = logging.getLogger(__name__)

RUBBERS = ("neo-hookean", "mooney-rivlin", "yeoh", "arruda-boyce", "ogden", "ogden-3")
"""Laws that are tried where none are named."""

TOLERANCE = 1e-15
FIRST_EVALUATIONS, MOST_EVALUATIONS = 25, 300
"""Of every start, and of the best ones. Sums of powers have long flat valleys, along which nothing
is gained."""

FINALISTS = 2

KNOWN = 1.0
"""An error bar of more than this share of the value: the parameter is not determined."""

TOGETHER = 0.99
"""Correlation beyond which two parameters are seen only together."""

TRIED = 201
"""Stretches at which it is asked whether the stress rises."""


@dataclass(frozen=True)
class CurveFit:
    """A law that was fitted; law is None where it could not be, and `reason` says why.

    values, sigma: fitted parameters and their standard deviations; remarks: what is to be said of
    single parameters ("not determined", "at its bound", "not seen: ..."); correlation: of the
    fitted ones, in the order of `sigma`; reduced: chi^2 / (n - k); r_squared, misfit: of each curve
    (misfit: root mean square over the curve's largest stress); shear_modulus, youngs_modulus
    [Pa] at small strain with `shear_sigma`; unstable: where the stress does not rise.
    """

    name: str
    law: Law | None = None
    values: dict[str, float] = field(default_factory=dict)
    sigma: dict[str, float] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    correlation: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    count: int = 0
    chi2: float = float("inf")
    reduced: float = float("inf")
    aicc: float = float("inf")
    bic: float = float("inf")
    r_squared: tuple[float, ...] = ()
    misfit: tuple[float, ...] = ()
    shear_modulus: float = float("nan")
    shear_sigma: float = float("nan")
    youngs_modulus: float = float("nan")
    unstable: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    starts: int = 0
    agreeing: int = 0
    reason: str = ""

    def stress(self, loading: str, stretch, *, incompressible: bool = True) -> np.ndarray:
        """Nominal stress [Pa] of the fitted law."""
        if self.law is None:
            raise BadInput(f"{self.name} was not fitted: {self.reason}")
        specimen = Specimen(self.law.energy, incompressible)
        return specimen.respond(loading, stretch, self.law.values).stress


@dataclass(frozen=True)
class CurveFits:
    """All laws, the best first. error: how the points were weighted."""

    fits: tuple[CurveFit, ...]
    curves: tuple[Curve, ...]
    error: StressError
    incompressible: bool = True

    @property
    def best(self) -> CurveFit:
        """The law that the curves speak for."""
        return self.fits[0]

    def __iter__(self) -> Iterator[CurveFit]:
        return iter(self.fits)

    def __getitem__(self, name: str) -> CurveFit:
        for fit in self.fits:
            if fit.name == name:
                return fit
        names = ", ".join(fit.name for fit in self.fits)
        raise BadInput(f"'{name}' was not fitted; there are {names}.")

    def __str__(self) -> str:
        from pliant.inverse.curves.curve_table import fits_table

        return fits_table(self)


def fit_curve(
    curves: Curve | str | Path | Sequence[Curve | str | Path],
    materials: Sequence[str | Energy] | str = RUBBERS,
    *,
    loading: str | None = None,
    units: str | None = None,
    columns: str | None = None,
    error: float | str | None = None,
    incompressible: bool = True,
    poisson_ratio: float = 0.499,
    signed: Sequence[str] = (),
    all_positive: bool = False,
) -> CurveFits:
    """Fit laws to a test machine's curves, all curves at once, and rank them.

    curves: `Curve`s or files; loading, units, columns as in `load_curve`. materials: names of laws,
    or energies of your own. error: of a stress, "2%" (relative) or "10kPa" (absolute; a number is
    in Pa); without it 2 % is assumed, and error bars follow from the scatter alone. incompressible:
    hold the volume (parameters of the volume are then not seen, and set as `poisson_ratio` has
    them); False: the sides are free and the law's own volume term is fitted. signed: parameters
    that may be negative beside the known ones; all_positive: none may.
    """
    if isinstance(curves, Curve | str | Path):
        curves = [curves]
    read = tuple(
        c if isinstance(c, Curve) else load_curve(c, loading=loading, units=units, columns=columns)
        for c in curves
    )
    if not read:
        raise BadInput("There is no curve to fit: name at least one file.")
    names = materials.split(",") if isinstance(materials, str) else list(materials)
    energies = [
        m if isinstance(m, Energy) else find_law(m.strip())
        for m in names
        if isinstance(m, Energy) or m.strip()
    ]
    if not energies:
        raise BadInput("Name at least one law to fit, for example yeoh.")
    if not 0.0 < poisson_ratio < 0.5:
        raise BadInput(f"poisson_ratio must lie between 0 and 0.5, not {poisson_ratio}.")
    weight = error if isinstance(error, StressError) else stress_error(error, units)
    found = []
    for energy in energies:
        problem = CurveProblem(energy, read, weight, incompressible, tuple(signed), all_positive)
        try:
            found.append(_fitted(problem, poisson_ratio))
        except BadInput as failure:
            found.append(CurveFit(energy.name, reason=str(failure)))
    if all(f.law is None for f in found):
        raise BadInput(f"None of the laws could be fitted; {found[0].name}: {found[0].reason}")
    found.sort(key=lambda f: (f.law is None, f.aicc, f.chi2))
    return CurveFits(tuple(found), read, weight, incompressible)


def _fitted(problem: CurveProblem, poisson_ratio: float) -> CurveFit:
    n, k = problem.count, len(problem.names)
    if k == 0:
        raise BadInput("these curves show none of its parameters.")
    if n < k:
        raise BadInput(f"{n} points cannot determine its {k} parameters: measure more.")
    ends = _polished(problem)
    chi2, x, at = ends[0]
    noise = 1e-9 * n  # what is as good as exact counts as equal
    agreeing = sum(e[0] <= 1.01 * chi2 + noise for e in ends)
    p = at.values(x)
    values = dict(zip(problem.names, (float(v) for v in p), strict=True))
    reduced = chi2 / (n - k) if n > k else float("nan")
    spread = reduced if not problem.error.stated else max(reduced, 1.0)
    at_bound = at.at_bound(x)
    covariance, blind = _covariance(at.by_parameters(x), at_bound)
    covariance = covariance * (spread if np.isfinite(spread) else 1.0)
    sigma = np.sqrt(np.diag(covariance))
    sigma[blind] = np.inf
    law, remarks = _law(problem, values, poisson_ratio)
    for j, m in enumerate(problem.names):
        if at_bound[j]:
            remarks[m] = "at its bound: not determined"
        elif not sigma[j] <= KNOWN * abs(p[j]):
            remarks[m] = "not determined"
    shear, slopes = initial_shear_modulus(
        problem.energy, {m: float(v) for m, v in law.values.items()}
    )
    g = np.array([slopes[m] for m in problem.names])
    free = np.isfinite(sigma)
    shear_sigma = float(np.sqrt(max(g[free] @ covariance[np.ix_(free, free)] @ g[free], 0.0)))
    if np.abs(g[~free] * p[~free]).max(initial=0.0) > 1e-3 * abs(shear):
        shear_sigma = float("inf")
    scale = np.where(free & (sigma > 0.0), sigma, 1.0)
    correlation = covariance / np.outer(scale, scale)
    criteria = _criteria(chi2, n, k)
    inside, outside = _instabilities(problem, law)
    fit = CurveFit(
        problem.energy.name, law, values,
        dict(zip(problem.names, (float(s) for s in sigma), strict=True)), remarks, correlation,
        n, chi2, reduced, *criteria, *_quality(problem, law), shear, shear_sigma,
        3.0 * shear if problem.incompressible else float(law.youngs_modulus), inside,
        (), len(ends), agreeing,
    )  # fmt: skip
    return replace(fit, advice=(*_advice(fit, problem), *outside))


def _polished(problem: CurveProblem) -> list[tuple[float, np.ndarray, Coordinates]]:
    """Where the starts end: chi^2, coordinates; the best first. All go a little way, the best ones
    to the end.
    """
    from scipy.optimize import least_squares

    def run(at: Coordinates, x: np.ndarray, most: int) -> tuple[float, np.ndarray, Coordinates]:
        slopes: Any = at.jacobian  # SciPy's own stubs expect the name of a method
        end = least_squares(
            at.residuals, x, slopes, bounds=(at.low, at.high), x_scale="jac",
            ftol=TOLERANCE, xtol=TOLERANCE, gtol=TOLERANCE, max_nfev=most,
        )  # fmt: skip
        return 2.0 * float(end.cost), end.x, at

    ends = []
    for start in curve_starts(problem):
        at = Coordinates(problem, start)
        if np.isfinite(at.residuals(at.start)).all():
            ends.append(run(at, at.start, FIRST_EVALUATIONS))
    if not ends:
        raise BadInput("it is not defined at these stretches, from wherever it was started.")
    ends.sort(key=lambda e: e[0])
    ends[:FINALISTS] = [run(at, x, MOST_EVALUATIONS) for _, x, at in ends[:FINALISTS]]
    ends.sort(key=lambda e: e[0])
    return ends


def _criteria(chi2: float, n: int, k: int) -> tuple[float, float]:
    """AICc and BIC; an exact fit is held to the digits that there are."""
    K = k + 1
    fit = n * np.log(max(chi2 / n, 1e-20))
    few = 2.0 * K * (K + 1) / (n - K - 1) if n > K + 1 else float("inf")
    return float(fit + 2.0 * K + few), float(fit + K * np.log(n))


def _covariance(J: np.ndarray, at_bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(J^T J)^-1 over the parameters that are free, and which of all the data do not see.

    Singular directions of the column-scaled J below 1e-9 of the largest are not seen at all.
    """
    k = J.shape[1]
    blind = at_bound.copy()
    out = np.zeros((k, k))
    free = np.flatnonzero(~blind)
    if not len(free):
        return out, blind
    size = np.linalg.norm(J[:, free], axis=0)
    dead = ~(size > 0.0)
    size[dead] = 1.0
    _, s, Vt = np.linalg.svd(J[:, free] / size, full_matrices=False)
    seen = s > 1e-9 * max(s.max(initial=0.0), 1e-300)
    V = Vt[seen].T / s[seen]
    out[np.ix_(free, free)] = (V @ V.T) / np.outer(size, size)
    lost = (Vt[~seen] ** 2).sum(axis=0) > 1e-6
    blind[free[lost | dead]] = True
    return out, blind


def _law(
    problem: CurveProblem, values: dict[str, float], poisson_ratio: float
) -> tuple[Law, dict[str, str]]:
    """The law with numbers for what the curves do not show, and what to say about those."""
    energy = problem.energy
    full = {**values, **dict.fromkeys(problem.unseen, 1.0)}
    shear, _ = initial_shear_modulus(energy, full)
    E = 2.0 * (1.0 + poisson_ratio) * shear
    E = E if E > 0.0 else problem.scale
    known: Any = dict.fromkeys(problem.unseen, bulk_and_shear(E, poisson_ratio)[0])
    if energy.starts is not None:
        known = energy.starts(E, poisson_ratio)
    filled = {n: float(known[n]) for n in problem.unseen}
    remark = f"not seen: set for a Poisson's ratio of {poisson_ratio:g}"
    law = energy(**{n: (values | filled)[n] for n in energy.parameters})
    return law, dict.fromkeys(filled, remark)


def _quality(problem: CurveProblem, law: Law) -> tuple[tuple[float, ...], tuple[float, ...]]:
    r_squared, misfit = [], []
    for curve, keep in zip(problem.curves, problem.used, strict=True):
        stretch, stress = curve.stretch[keep], curve.stress[keep]
        r = problem.specimen.respond(curve.loading, stretch, law.values).stress - stress
        spread = float(((stress - stress.mean()) ** 2).sum())
        r_squared.append(1.0 - float(r @ r) / spread if spread > 0.0 else float("nan"))
        misfit.append(float(np.sqrt(np.mean(r**2)) / np.abs(stress).max()))
    return tuple(r_squared), tuple(misfit)


def _instabilities(problem: CurveProblem, law: Law) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where the stress does not rise: within what was measured, and under other loadings."""
    measured: dict[str, tuple[float, float]] = {}
    for curve in problem.curves:
        low, high = measured.get(curve.loading, (1.0, 1.0))
        measured[curve.loading] = (
            min(low, float(curve.stretch.min())), max(high, float(curve.stretch.max()))
        )  # fmt: skip
    farthest = max(high for _, high in measured.values())
    inside, outside = [], []
    for loading in LOADINGS:
        low, high = measured.get(loading, (1.0, farthest))
        stretch = np.linspace(low, high, TRIED)
        falling = ~(problem.specimen.respond(loading, stretch, law.values).slope > 0.0)
        if not falling.any():
            continue
        at = stretch[falling]
        text = f"the stress does not rise between stretches of {at.min():.3g} and {at.max():.3g}"
        if loading in measured:
            inside.append(f"{loading}: {text}")
        else:
            outside.append(f"Unstable under {loading} loading, which was not measured: {text}.")
    return tuple(inside), tuple(outside)


def _advice(fit: CurveFit, problem: CurveProblem) -> list[str]:
    lines = [f"Not stable within the data: {text}." for text in fit.unstable]
    unknown = [n for n in problem.names if n in fit.remarks]
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        lines.append(
            f"{', '.join(unknown)} {verb} not determined by these curves: use a law with fewer "
            "parameters, or measure another kind of loading or a longer range."
        )
    names = list(fit.sigma)
    for i in range(len(names)):
        for j in range(i):
            c = fit.correlation[i, j]
            if abs(c) > TOGETHER and names[i] not in unknown and names[j] not in unknown:
                lines.append(
                    f"{names[j]} and {names[i]} are seen only together (correlation {c:.4f})."
                )
    if fit.agreeing < fit.starts and fit.agreeing == 1:
        lines.append(
            f"Only one of {fit.starts} starts ended here; there are other minima, and parameters "
            "may be others than those of a colleague's fit."
        )
    if fit.shear_modulus <= 0.0:
        lines.append("The law has no stiffness at rest: do not simulate with it.")
    return lines
