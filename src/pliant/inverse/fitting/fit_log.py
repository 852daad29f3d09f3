"""What an optimiser tells the world while it runs, and what it hands back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pliant.inverse.fitting.fit import Step
from pliant.inverse.joint.joint_problem import AnyProblem
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.evaluation import Evaluation


@dataclass
class FitLog:
    """The steps so far; on_step is told each."""

    on_step: Callable[[Step], None] | None = None
    steps: list[Step] = field(default_factory=list)
    stage: str = ""
    iterations: int = 0

    def add(self, problem: AnyProblem, e: Evaluation, horizon: int) -> None:
        """Log an evaluation, unless it is the last one again."""
        values = problem.unknowns.named(problem.unknowns.values(e.q))
        if self.steps and self.steps[-1].values == values and self.steps[-1].stage == self.stage:
            return
        step = Step(self.iterations, horizon, e.cost, e.rms, values, self.stage)
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)


@dataclass(frozen=True)
class Minimum:
    """Where an optimiser ended: q, the evaluation there (tangents where it has them).

    pairs: products (d, H d) with the data's Hessian, from an optimiser that makes them.
    """

    q: np.ndarray
    evaluation: Evaluation
    converged: bool
    pairs: Sequence[tuple[np.ndarray, np.ndarray]] = field(default=(), repr=False)


class Optimiser:
    """What minimises the misfit of a problem; max_iterations: of its log."""

    def __init__(self, problem: AnyProblem, log: FitLog, *, loss: str, max_iterations: int):
        self.problem, self.log, self.loss_kind = problem, log, loss
        self.max_iterations = max_iterations

    def run(
        self, q: np.ndarray, horizon: int, final: bool, current: Evaluation | None = None
    ) -> Minimum:
        """Minimise over the frames up to `horizon` from q, where `current` may be known already.

        final: whether the end is a result, and not only the start of a longer horizon.
        """
        raise TypeError(type(self).__name__)

    def loss(self, e: Evaluation | None = None) -> Loss:
        """By the residuals, if they are known."""
        return robust_loss(self.problem, self.loss_kind, e)


def robust_loss(problem: AnyProblem, kind: str, e: Evaluation | None = None) -> Loss:
    """The loss whose scale follows the residuals down to the noise, and is at most a cell."""
    spacing = problem.spacing
    scale = spacing if e is None else max(problem.noise or 0.0, min(e.spread, spacing))
    return Loss(max(scale, 1e-9 * spacing), kind)


def rescaled(problem: AnyProblem, e: Evaluation, loss: Loss, horizon: int) -> Evaluation:
    """The evaluation under another loss."""
    if problem.cost_name == "foot":  # its curvature correction depends on the scale
        same = abs(e.loss.sigma - loss.sigma) < 0.2 * loss.sigma
        return e if same else problem.evaluate(e.q, loss, horizon=horizon)
    return e.under(loss)
