"""Which law does a recording speak for? Each is fitted, then ranked by what its parameters cost.

With n residuals of root mean square s and k parameters the log-likelihood of Gaussian noise of
unknown size is -n ln(s) up to a constant, hence

    AIC = 2 n ln(s) + 2 k,    BIC = 2 n ln(s) + k ln(n)

(Akaike 1974, Schwarz 1978). n is the same for all: laws differ by a few rays at the silhouette, and
each residual more or less would count as 2 ln(s). Differences count: 10 is decisive. Where the law
is right the residuals are the camera's noise; where not they keep a pattern, and s is larger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.scene import Scene
from pliant.dynamics.scene_blocks import LAW_PREFIX as PREFIX
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Law
from pliant.inverse.fitting.fit import Fit
from pliant.inverse.fitting.reconstruct import reconstruct
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown


@dataclass(frozen=True)
class Candidate:
    """A law that was fitted; fit is None where it could not be, and `reason` says why."""

    name: str
    law: Law | None
    fit: Fit | None
    count: int = 0
    rms: float = float("nan")
    aic: float = float("inf")
    bic: float = float("inf")
    reason: str = ""


def compare_laws(
    scene: Scene,
    seen,
    names: Sequence[str],
    *,
    hold: Sequence[str] = (),
    also: dict | None = None,
    on_law: Callable[[str], None] | None = None,
    **options,
) -> list[Candidate]:
    """Fit every law to the observations; best BIC first.

    The parameters start where the scene's material has its modulus and ratio at small strain. hold:
    parameter names that stay there; also: further unknowns {name: start}; options as `reconstruct`.
    """
    if len(names) < 1:
        raise BadInput("Name at least one law to compare.")
    energies = [find_law(n) for n in names]  # a misspelt name must not wait for a fit
    found = []
    for energy in energies:
        if on_law is not None:
            on_law(energy.name)
        m = scene.cell_material
        law = energy.from_moduli(float(np.mean(m.youngs_modulus)), float(np.mean(m.poisson_ratio)))
        found.append(_fitted(replace(scene, law=law), law, seen, hold, also or {}, options))
    return sorted(judged(found), key=lambda c: c.bic)


def judged(candidates: Sequence[Candidate]) -> list[Candidate]:
    """AIC and BIC of all that were fitted, over the same number of residuals."""
    n = min((c.count for c in candidates if c.fit is not None), default=0)
    out = []
    for c in candidates:
        if c.fit is not None:
            k, likelihood = len(c.fit.labels), 2.0 * n * np.log(max(c.rms, 1e-300))
            c = replace(c, aic=likelihood + 2.0 * k, bic=likelihood + k * float(np.log(n)))
        out.append(c)
    return out


def _fitted(scene: Scene, law: Law, seen, hold, also: dict, options: dict) -> Candidate:
    starts = {PREFIX + n: float(v) for n, v in law.values.items() if n not in hold}
    starts |= also
    try:
        fit = reconstruct(scene, seen, starts, **options)
    except (SolverFailure, BadInput) as failure:
        return Candidate(law.name, None, None, reason=str(failure))
    values = {n: fit.values.get(PREFIX + n, float(v)) for n, v in law.values.items()}
    final = law.replace(**values)
    unknowns = UnknownSet(
        tuple(make_unknown(n, fit.values.get(n, v), scene) for n, v in starts.items())
    )
    seen = seen if fit.registration is None else fit.registration.apply(seen)
    problem = Problem(scene, seen, unknowns, cost=options.get("cost", "auto"))
    loss = Loss(max(fit.noise, 1e-12), "squares")
    residuals = problem.evaluate(unknowns.start(), loss, derivatives=False).usable
    return Candidate(law.name, final, fit, len(residuals), float(np.sqrt(np.mean(residuals**2))))


def ranking_table(candidates: Sequence[Candidate]) -> str:
    """Plain text: differences to the best, and the recovered parameters."""
    best_aic = min(c.aic for c in candidates)
    best_bic = min(c.bic for c in candidates)
    lines = [f"{'law':<20}{'rms':>12}{'dAIC':>10}{'dBIC':>10}  parameters"]
    for c in candidates:
        if c.fit is None:
            lines.append(f"{c.name:<20}{'-':>12}{'-':>10}{'-':>10}  {c.reason}")
            continue
        lines.append(
            f"{c.name:<20}{c.rms:>12.4g}{c.aic - best_aic:>10.1f}{c.bic - best_bic:>10.1f}  {c.law}"
        )
    return "\n".join(lines)


def curve_table(candidates: Sequence[Candidate], stretches: np.ndarray) -> dict[str, list[float]]:
    """Uniaxial nominal stress of every fitted law over the stretches, for a picture."""
    from pliant.fem.laws.curves import uniaxial

    out: dict[str, list[float]] = {"stretch": [float(s) for s in stretches]}
    for c in candidates:
        if c.law is not None:
            try:
                out[c.name] = [float(x) for x in uniaxial(c.law, stretches)[0]]
            except BadInput:  # a law may be unstable at the far end of the range
                continue
    return out
