"""What each experiment of a joint fit would say alone, and whether they agree.

From the joint minimum each experiment takes Gauss-Newton steps of its own, in the directions that
it sees. With q_k and C_k where it ends and its covariance there (noise and model), the others
together at q_o with C_o, all in the unknowns that are shared, and D the squares of what coarser
grids and longer steps leave of d,

    X^2 = d^T (C_k + C_o + D)^-1 d,    d = q_k - q_o,

is chi-squared with as many degrees of freedom as there are numbers in d, if all look at the same
material. The experiment that is farthest off is named; then the rest are looked at without it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pliant.core.errors import SolverFailure
from pliant.inverse.fitting.robust_error import information
from pliant.inverse.fitting.total_error import Repeat, error_budget, shared_square
from pliant.inverse.joint.joint_problem import JointProblem
from pliant.inverse.joint.opinion import Opinion
from pliant.inverse.motion.evaluation import Evaluation

log = logging.getLogger(__name__)

STEPS = 3
"""Simulations that an opinion takes at most."""

SMALL = 0.03
"""Step in free coordinates after which it is not simulated again."""

SEEN = 1.0
"""Standard deviation, in free coordinates, up to which an experiment sees a direction alone."""

UNSEEN = 1e3
"""That of one that it does not see."""

CHANCE = 0.0027
"""Probability of what is told as a disagreement: three standard deviations."""


def opinions(p: JointProblem, e: Evaluation, repeats: Sequence[Repeat]) -> list[Opinion]:
    """Of all experiments at a joint minimum e whose weights are final."""
    out = []
    for k, (x, part, place) in enumerate(zip(p.experiments, p.parts, p.sharing.place, strict=True)):
        joint = p.part_of(e, k)
        noise = part.noise or p.own_noise(k, joint, final=True)
        noise = noise if np.isfinite(noise) else e.spread / p.weights[k]
        own = _alone(p, k, joint)
        if not part.noise:  # what it cannot explain together with the others is no noise
            alone = p.own_noise(k, own, final=True)
            noise = alone if np.isfinite(alone) else noise
        own = own.under(replace(own.loss, sigma=max(noise, 1e-9 * part.spacing)))
        C = _covariance(own)
        values, slopes = part.unknowns.values(own.q), part.unknowns.slopes(own.q)
        sigma = np.abs(slopes) * np.sqrt(np.diag(C))
        again = _repeats(k, repeats, noise)
        budget = error_budget(part.unknowns, own.q, own, sigma, noise, again)
        own_errors = np.hypot(sigma, budget.causes["model"])
        grown = own_errors / np.maximum(sigma, 1e-300)
        labels = [p.unknowns.labels[i] for i in place]
        out.append(
            Opinion(
                x.name,
                *(
                    dict(zip(labels, v.tolist(), strict=True))
                    for v in (values, sigma, budget.total)
                ),
                noise=noise,
                rms=joint.rms,
                q=own.q,
                covariance=C * np.outer(grown, grown),
                coarser=[(r.q, r.share) for r in again],
            )  # fmt: skip
        )
    return out


def _repeats(k: int, repeats: Sequence[Repeat], noise: float) -> list[Repeat]:
    """One experiment's part in the coarser repeats."""
    out = []
    for r in repeats:
        own = r.parts[k].predicted(_step(r.parts[k]))
        out.append(replace(r, q=own.q, pattern=shared_square(own, noise), parts=()))
    return out


def _alone(p: JointProblem, k: int, e: Evaluation) -> Evaluation:
    """Where an experiment goes alone from the joint minimum; by its linearisation at last."""
    part, place = p.parts[k], p.sharing.place[k]
    limits = p.unknowns.limits()
    lower, upper = limits[0][place], limits[1][place]
    for number in range(STEPS):
        dq = np.clip(e.q + np.clip(_step(e), -1.0, 1.0), lower, upper) - e.q
        ahead = e.predicted(dq)
        if number == STEPS - 1 or np.abs(dq).max(initial=0.0) < SMALL:
            return ahead
        try:
            there = part.evaluate(ahead.q, e.loss)
        except SolverFailure as failure:
            log.info("experiment %s alone: %s", p.experiments[k].name, failure)
            return ahead
        e = replace(there, prior=ahead.prior)
    return e


def _step(e: Evaluation) -> np.ndarray:
    """The Gauss-Newton step in the directions that are seen."""
    _, g, H = e.model
    values, vectors = np.linalg.eigh(H)
    seen = values > 1.0 / SEEN**2
    own = vectors[:, seen]
    return -own @ ((own.T @ g) / values[seen])


def _covariance(e: Evaluation) -> np.ndarray:
    values, vectors = np.linalg.eigh(information(e))
    return (vectors / np.maximum(values, 1.0 / UNSEEN**2)) @ vectors.T


@dataclass(frozen=True)
class Quarrel:
    """An experiment against others: chi-squared, its probability, and the unknown (index in q)
    that is farthest apart, by so many error bars; theirs: value and sigma of the others there.
    """

    chi2: float
    chance: float
    unknown: int
    apart: float
    theirs: tuple[float, float]


def quarrel(p: JointProblem, found: Sequence[Opinion], k: int, others: Sequence[int]) -> Quarrel:
    """Experiment k against the others together."""
    from scipy.stats import chi2

    place = p.sharing.place[k]
    at = place[[any(i in p.sharing.place[j] for j in others) for i in place]]
    if not len(at):
        return Quarrel(0.0, 1.0, 0, 0.0, (0.0, 0.0))
    mine = [int(np.flatnonzero(place == i)[0]) for i in at]
    q_others, C_others = _together(p, found, others, at, [o.q for o in found])
    d = found[k].q[mine] - q_others
    C = found[k].covariance[np.ix_(mine, mine)] + C_others
    for r, (q, share) in enumerate(found[k].coarser):  # what grid and step do to all is no quarrel
        coarse = _together(p, found, others, at, [o.coarser[r][0] for o in found])[0]
        C = C + np.diag((share * (d - (q[mine] - coarse))) ** 2)
    size = float(d @ np.linalg.solve(C, d))
    bars = np.abs(d) / np.sqrt(np.diag(C))
    worst = int(np.argmax(bars))
    q = p.unknowns.start()
    q[at] = q_others
    value, slope = p.unknowns.values(q)[at[worst]], p.unknowns.slopes(q)[at[worst]]
    theirs = float(value), float(abs(slope) * np.sqrt(C_others[worst, worst]))
    return Quarrel(size, float(chi2.sf(size, len(at))), int(at[worst]), float(bars[worst]), theirs)


def _together(
    p: JointProblem,
    found: Sequence[Opinion],
    which: Sequence[int],
    at: np.ndarray,
    q: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """The mean by information of opinions q in the coordinates `at`, and its covariance."""
    P, b = np.zeros((len(at), len(at))), np.zeros(len(at))
    for j in which:
        place = p.sharing.place[j]
        here = np.flatnonzero(np.isin(at, place))
        own = [int(np.flatnonzero(place == i)[0]) for i in at[here]]
        information = np.linalg.inv(found[j].covariance[np.ix_(own, own)])
        P[np.ix_(here, here)] += information
        b[here] += information @ q[j][own]
    C = np.linalg.inv(P)
    return C @ b, C


def compared(p: JointProblem, found: Sequence[Opinion]) -> tuple[list[Opinion], list[str]]:
    """The opinions with how far apart they are, and a sentence on each that disagrees."""
    left, said = list(range(len(found))), []
    out = list(found)
    for k in left:
        apart = quarrel(p, found, k, [j for j in left if j != k]).apart
        out[k] = replace(out[k], apart=apart)
    while len(left) > 1:
        own = {k: quarrel(p, found, k, [j for j in left if j != k]) for k in left}
        worst = max(left, key=lambda k: own[k].chi2)
        if own[worst].chance > CHANCE:
            break
        said.append(_told(p, found, worst, [j for j in left if j != worst], own[worst]))
        if len(left) == 2:  # nobody can tell which
            for k in left:
                out[k] = replace(out[k], agrees=False)
            break
        left.remove(worst)
        out[worst] = replace(out[worst], agrees=False, apart=own[worst].apart)
    return out, said


def _told(
    p: JointProblem, found: Sequence[Opinion], k: int, others: Sequence[int], q: Quarrel
) -> str:
    label = p.unknowns.labels[q.unknown]
    own, theirs = found[k], q.theirs
    value = f"{own.values[label]:.4g} +- {own.sigma[label]:.2g}"
    if len(others) == 1:
        return (
            f"Experiments {own.name} and {found[others[0]].name} disagree: alone they make {label} "
            f"{value} and {theirs[0]:.4g} +- {theirs[1]:.2g}, {q.apart:.1f} error bars apart. One "
            "of them is described wrongly (density, loads, walls, law), or they are not of one "
            "material; a third would tell which."
        )
    return (
        f"Experiment {own.name} disagrees with the others: alone it makes {label} {value}, they "
        f"make it {theirs[0]:.4g} +- {theirs[1]:.2g}, {q.apart:.1f} error bars apart. Look for "
        "what is wrong in its scene (density, loads, walls, law), or leave it out."
    )
