"""Where the fit of a law to a curve starts: several places, so that it ends in no poor minimum.

Most laws are linear in their moduli: for given exponents (or chain lengths) the best moduli are a
least-squares problem with one answer (variable projection, Golub and Pereyra 1973). So only what is
left is searched on a grid of sizes and signs, all of it at once, and the best few places are kept.
"""

import itertools
from dataclasses import replace

import numpy as np

from pliant.core.errors import BadInput
from pliant.inverse.curves.curve_problem import CurveProblem

MOST_PLACES = 3000
"""Places of the grid; a thousand of them take a tenth of a second."""

KEPT = 6
"""Best places that are polished."""

NEAR = 0.35
"""Two places of which all exponents differ by less, relatively, are one."""

OVERFLOW = 1e30
"""Residuals beyond which a place is not worth a thought: exponentials and powers far off."""

VOLUME_RATIOS = (0.3, 0.45, 0.49, 0.499)
"""Poisson's ratios at which a compressible law starts."""


def curve_starts(problem: CurveProblem) -> list[dict[str, float]]:
    """Starting values of the fitted parameters, the most promising first."""
    if not problem.incompressible:
        return _compressible_starts(problem)
    base = _base(problem)
    linear = linear_parameters(problem, base)
    others = [n for n in problem.names if n not in linear]
    grid = _grid(problem, base, others)
    values = {n: grid[:, [k]] for k, n in enumerate(others)}
    values |= {n: np.full((len(grid), 1), base[n]) for n in linear}
    stress, by = problem.responses(values)
    columns = np.stack([by[n] for n in linear], axis=-1) if linear else np.zeros((*stress.shape, 0))
    rest = stress - sum(values[n] * by[n] for n in linear)
    A, b = columns / problem.sigma[:, None], (problem.measured - rest) / problem.sigma
    places = []
    for k, row in enumerate(grid):
        size = np.abs(A[k] * problem.scale).max(initial=0.0)
        if not (size < OVERFLOW and np.isfinite(b[k]).all()):
            continue
        found = dict(zip(others, (float(v) for v in row), strict=True))
        moduli, cost = _moduli(problem, linear, found, A[k], b[k])
        places.append((cost, {**found, **moduli}))
    if not places:
        raise BadInput(f"The law '{problem.energy.name}' has no stress at these stretches.")
    places.sort(key=lambda place: place[0])
    return _distinct([place for _, place in places], others)


def linear_parameters(problem: CurveProblem, base: dict[str, float]) -> list[str]:
    """Parameters that the stress is linear in, together, found by changing them."""
    rng = np.random.default_rng(5)
    changed = {n: v * rng.uniform(1.3, 1.7) for n, v in base.items()}
    _, by = problem.responses(base)
    scale = {n: np.abs(by[n]).max() for n in problem.names}
    moves = {}
    for n in problem.names:
        _, after = problem.responses({**base, n: changed[n]})
        moves[n] = {
            m for m in problem.names
            if not np.abs(after[m] - by[m]).max() <= 1e-9 * scale[m]
        }  # fmt: skip
    linear: list[str] = []
    for n in problem.names:
        if problem.is_stress(n) and not moves[n] & {n, *linear}:
            linear.append(n)
    return linear


def _base(problem: CurveProblem, poisson_ratio: float = 0.49) -> dict[str, float]:
    """Parameters of about the measured stiffness."""
    l = problem.stretch
    E = 3.0 * float(np.median(np.abs(problem.measured / (l - 1.0 / l**2)))) or problem.scale
    if problem.energy.starts is not None:
        found = problem.energy.starts(E, poisson_ratio)
        return {n: float(found[n]) for n in problem.names}
    return {n: E / 3.0 if problem.is_stress(n) else 1.0 for n in problem.names}


def _grid(problem: CurveProblem, base: dict[str, float], others: list[str]) -> np.ndarray:
    """Sizes (and signs) of the parameters that are not linear, (places, parameters)."""
    if not others:
        return np.zeros((1, 0))
    room = MOST_PLACES ** (1.0 / len(others))
    axes = []
    for n in others:
        signs = (1.0, -1.0) if problem.may_be_negative(n) else (1.0,)
        levels = int(np.clip(room / len(signs), 3, 15))
        reach = 64.0 if len(others) == 1 else 6.0
        sizes = np.geomspace(abs(base[n]) / reach, abs(base[n]) * reach, levels)
        axes.append([s * x for s in signs for x in sizes])
    grid = np.array(list(itertools.islice(itertools.product(*axes), 4 * MOST_PLACES)))
    exponents = [
        k for k, n in enumerate(others) if any(problem.partner(m) == n for m in problem.names)
    ]
    if len(exponents) > 1:  # terms of a sum can be exchanged: one order is enough
        sorted_rows = np.all(np.diff(grid[:, exponents], axis=1) < 0.0, axis=1)
        grid = grid[sorted_rows]
    return grid


def _moduli(
    problem: CurveProblem, linear: list[str], others: dict[str, float], A: np.ndarray, b: np.ndarray
) -> tuple[dict[str, float], float]:
    """The best linear parameters within their signs, and the sum of squares that they leave."""
    from scipy.optimize import nnls

    if not linear:
        return {}, float(b @ b)
    columns, owner = [], []
    for k, n in enumerate(linear):
        partner = problem.partner(n)
        if partner is not None:
            signs = [float(np.sign(others[partner]))]
        else:
            signs = [1.0, -1.0] if problem.may_be_negative(n) else [1.0]
        for sign in signs:
            columns.append(sign * A[:, k])
            owner.append((n, sign))
    M = np.stack(columns, axis=1)
    size = np.linalg.norm(M, axis=0)
    size[size == 0.0] = 1.0
    try:
        x, norm = nnls(M / size, b)
    except RuntimeError:  # it went round in circles: columns that are nearly the same
        return dict.fromkeys(linear, 0.0), float(b @ b)
    out = dict.fromkeys(linear, 0.0)
    for (n, sign), value in zip(owner, x / size, strict=True):
        out[n] += sign * float(value)
    for n, sign in owner:  # a term that is switched off could not come back
        if out[n] == 0.0 and not (problem.may_be_negative(n) and problem.partner(n) is None):
            out[n] = sign * 1e-4 * problem.scale
    return out, float(norm**2)


def _distinct(places: list[dict[str, float]], others: list[str]) -> list[dict[str, float]]:
    kept: list[dict[str, float]] = []
    for place in places:
        near = any(
            all(abs(place[n] - k[n]) <= NEAR * max(abs(place[n]), abs(k[n])) for n in others)
            for k in kept
        )
        if not near:
            kept.append(place)
        if len(kept) == KEPT:
            break
    return kept


def _compressible_starts(problem: CurveProblem) -> list[dict[str, float]]:
    """Those of the incompressible law, with the volume's moduli of several Poisson's ratios."""
    held = replace(problem, incompressible=True)
    shapes = curve_starts(held)[:2]
    extra = [n for n in problem.names if n not in held.names]
    if not extra:
        return [_base(problem, nu) for nu in VOLUME_RATIOS] + shapes
    out = []
    for shape in shapes:
        for nu in VOLUME_RATIOS:
            out.append({**shape, **{n: _base(problem, nu)[n] for n in extra}})
    return out
