"""The misfit of several experiments as one: residuals one below the other, unknowns shared.

The residuals r_k of experiment k count in units of its own noise s_k: with the first one's as unit,

    r = (.., s_0 / s_k r_k, ..),    J = (.., s_0 / s_k J_k P_k, ..),

P_k picking what experiment k depends on. So one noise, one loss and one Gauss-Newton Hessian are
those of all, and error bars follow as from one experiment. A noise that a recording does not state
is found in its residuals, anew in every iteration.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from pliant.inverse.joint.experiment import Experiment
from pliant.inverse.joint.sharing import Sharing
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.problem import Problem

FEWEST = 3
"""Residuals for each unknown of an experiment from which they tell its noise."""

MOST_WEIGHT = 1e6
"""Ratio of noises beyond which nobody believes them."""


class JointProblem:
    """Has what a fit asks of a Problem; parts: one for each experiment, with unknowns of its own.

    A horizon is one of the longest experiment's steps; the others see the same share of theirs.
    """

    def __init__(
        self, experiments: Sequence[Experiment], parts: Sequence[Problem], sharing: Sharing
    ):
        self.experiments, self.parts, self.sharing = tuple(experiments), tuple(parts), sharing
        self.unknowns = sharing.unknowns
        self.last_step = max(p.last_step for p in parts)
        self.cost_name = "foot" if any(p.cost_name == "foot" for p in parts) else "joint"
        self.noise = parts[0].noise
        counts = [p.measure.frame_count for p in parts]
        self._first = np.concatenate([[0], np.cumsum(counts)])
        cells = np.array([p.spacing for p in parts])
        self.weights = cells[0] / cells

    @property
    def spacing(self) -> float:
        """Of the first body's cells [m]; the others count by their noises' ratio."""
        return self.parts[0].spacing

    @property
    def cells(self) -> int:
        """Of the body with the fewest."""
        return min(p.cells for p in self.parts)

    def sizes(self, q: np.ndarray) -> np.ndarray:
        """What the error bar of each unknown is judged by."""
        out = []
        for k, m, own in zip(
            self.sharing.home, self.unknowns.members, self.unknowns.split(q), strict=True
        ):
            p = self.parts[k]
            out.append(m.size_of(own, p.scene, p.last_step * p.scene.dt))
        return np.concatenate(out)

    def cautions(self, q: np.ndarray) -> list[str]:
        """Where the method rivals the unknowns, each said once."""
        said = [t for k, p in enumerate(self.parts) for t in p.cautions(q[self.sharing.place[k]])]
        return list(dict.fromkeys(said))

    def _loss(self, k: int, loss: Loss) -> Loss:
        """The loss of an experiment's own residuals."""
        return Loss(loss.sigma / self.weights[k], loss.kind, loss.cutoff)

    def each(self, q: np.ndarray, loss: Loss) -> list[tuple[Problem, np.ndarray, Loss]]:
        """The problem of each experiment with its share of q and its loss."""
        own = enumerate(zip(self.parts, self.sharing.place, strict=True))
        return [(part, q[place], self._loss(k, loss)) for k, (part, place) in own]

    def _horizon(self, k: int, horizon: int | None) -> int | None:
        if horizon is None:
            return None
        last = self.parts[k].last_step
        return last if horizon >= self.last_step else max(2, round(horizon / self.last_step * last))

    def evaluate(
        self,
        q: np.ndarray,
        loss: Loss,
        *,
        derivatives: bool = True,
        horizon: int | None = None,
        tolerance: float | None = None,
    ) -> Evaluation:
        """Simulate all at q, each up to its share of `horizon`, and collect the misfit."""
        frames: dict[int, FrameMisfit] = {}
        for k, (part, own, its) in enumerate(self.each(q, loss)):
            e = part.evaluate(
                own, its, derivatives=derivatives, horizon=self._horizon(k, horizon),
                tolerance=tolerance,
            )  # fmt: skip
            frames |= self._taken(k, e, len(q) if derivatives else 0)
        return self.evaluation(q, loss, frames)

    def at_rest(self, q: np.ndarray, loss: Loss) -> Evaluation:
        """The misfit of bodies that do not move at all."""
        frames: dict[int, FrameMisfit] = {}
        for k, (part, own, its) in enumerate(self.each(q, loss)):
            frames |= self._taken(k, part.at_rest(own, its), 0)
        return self.evaluation(q, loss, frames)

    def _taken(self, k: int, e: Evaluation, width: int) -> dict[int, FrameMisfit]:
        """An experiment's frames among all, in the unit of all."""
        out = {}
        for number, f in e.frames.items():
            J = np.zeros((len(f.r), width))
            if width:
                J[:, self.sharing.place[k]] = self.weights[k] * f.J
            out[int(self._first[k]) + number] = FrameMisfit(self.weights[k] * f.r, J, f.usable)
        return out

    def part_of(self, e: Evaluation, k: int) -> Evaluation:
        """The misfit of one experiment [m], by its own unknowns, with the priors on these."""
        first, last, place = self._first[k], self._first[k + 1], self.sharing.place[k]
        w = self.weights[k]
        frames = {
            number - int(first): FrameMisfit(
                f.r / w, f.J[:, place] / w if f.J.shape[1] else f.J, f.usable
            )
            for number, f in e.frames.items()
            if first <= number < last
        }
        prior = None
        if e.prior is not None:
            slope, curvature = e.prior[1][place], e.prior[2][place]
            prior = (0.0, slope, curvature)
        return Evaluation(e.q[place], self._loss(k, e.loss), frames, int(last - first), prior)

    def parts_of(self, e: Evaluation) -> list[Evaluation]:
        """The misfit of each experiment [m]."""
        return [self.part_of(e, k) for k in range(len(self.parts))]

    def spread_of(self, e: Evaluation) -> float:
        """Robust size of the residuals: the mean experiment's, in cells of the first [m]."""
        own = zip(self.parts_of(e), self.parts, strict=True)
        return self.spacing * float(np.mean([part.spread / p.spacing for part, p in own]))

    def reweighed(self, e: Evaluation, *, final: bool = False) -> Evaluation:
        """The misfit with each experiment's residuals in units of its noise: the stated one, as
        long as the residuals are not above it (final: in any case), or theirs.
        """
        before = self.weights
        parts = self.parts_of(e)
        noises = np.array([self.own_noise(k, p, final=final) for k, p in enumerate(parts)])
        known = np.isfinite(noises)
        noises[~known] = np.median(noises[known]) if known.any() else 1.0
        noises = np.maximum(noises, noises.max() / MOST_WEIGHT)
        self.weights = noises[0] / noises
        frames = {}
        for k in range(len(parts)):
            ratio = self.weights[k] / before[k]
            for number in range(int(self._first[k]), int(self._first[k + 1])):
                if number in e.frames:
                    f = e.frames[number]
                    frames[number] = FrameMisfit(ratio * f.r, ratio * f.J, f.usable)
        return Evaluation(e.q, e.loss, frames, e.frame_count, e.prior)

    def own_noise(self, k: int, e: Evaluation, *, final: bool) -> float:
        """Scale [m] of an experiment's own residuals; nan where too few tell none."""
        part, unknowns = self.parts[k], len(self.sharing.place[k])
        count = len(e.usable)
        if part.noise and final:
            return part.noise
        if count < FEWEST * unknowns and not part.noise:
            return float("nan")
        free = max(count - unknowns, 1)
        spread = min(e.spread * float(np.sqrt(max(count, 1) / free)), part.spacing)
        return max(part.noise or 0.0, spread, 1e-9 * part.spacing)

    def frames_until(self, horizon: int) -> set[int]:
        """Frames that runs up to their shares of `horizon` reach."""
        return {
            int(self._first[k]) + number
            for k, p in enumerate(self.parts)
            for number in p.frames_until(self._horizon(k, horizon) or 0)
        }

    def evaluation(self, q: np.ndarray, loss: Loss, frames: dict[int, FrameMisfit]) -> Evaluation:
        """The frames' misfit with the priors."""
        prior = self.unknowns.prior_terms(q) if self.unknowns.priors else None
        ordered = dict(sorted(frames.items()))
        return Evaluation(q.copy(), loss, ordered, int(self._first[-1]), prior)

    def gradient(
        self, q: np.ndarray, loss: Loss, *, horizon: int | None = None
    ) -> tuple[Evaluation, np.ndarray]:
        """Misfit and gradient by the adjoints of all."""
        frames: dict[int, FrameMisfit] = {}
        total = np.zeros(len(q))
        for k, (part, own, its) in enumerate(self.each(q, loss)):
            e, g = part.gradient(own, its, horizon=self._horizon(k, horizon))
            frames |= self._taken(k, e, 0)
            total[self.sharing.place[k]] += g
        found = self.evaluation(q, loss, frames)
        return found, total if found.prior is None else total + found.prior[1]

    def penalty_hessian(self, q: np.ndarray) -> sparse.csr_array:
        """Hessian (p, p) of the priors."""
        return sparse.csr_array(sparse.diags_array(self.unknowns.prior_terms(q)[2]))

    def step_times(self) -> dict[str, float]:
        """Milliseconds of a step, of the mean experiment."""
        steps = [max(p.last_step, 1) for p in self.parts]
        times = [p.step_times() for p in self.parts]
        return {
            name: sum(t[name] * n for t, n in zip(times, steps, strict=True)) / sum(steps)
            for name in times[0]
        }


AnyProblem = Problem | JointProblem
"""Of one experiment, or of several."""
