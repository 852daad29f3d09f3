"""Find the unknowns of a scene from what was seen: Levenberg-Marquardt on batched tangents.

Each iteration simulates once, with the derivative along every unknown, and solves
(H + mu diag H) dq = -g with the Gauss-Newton Hessian H. Far starts first see a short horizon, where
phases still agree, then longer ones.
"""

import logging
import time
from collections.abc import Callable

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.scene import Scene
from pliant.inverse.fit import Fit, Step
from pliant.inverse.identifiability import advise
from pliant.inverse.losses import Loss
from pliant.inverse.problem import Evaluation, Problem
from pliant.inverse.unknowns import UnknownSet, make_unknown
from pliant.observe.observations import Observations

log = logging.getLogger(__name__)

HORIZONS = (0.25, 0.5, 1.0)
"""Shares of the recording that a far start sees one after the other."""

NEAR = 1.0
"""Residual, in cells, below which a start counts as near and sees the whole recording at once."""

GRADIENT_MISMATCH = 1e-3
"""Relative difference of the two gradients above which a fit does not start; solving to 1e-6 leaves
about 1e-5."""

MOST_TANGENTS = 64
"""Unknowns up to which tangents are affordable; stiffness fields have more."""

STEP_TOLERANCE = 3e-2
"""A step shorter than this share of its own standard deviation ends the fit."""


def reconstruct(
    scene: Scene,
    seen: Observations,
    unknowns: dict[str, float],
    *,
    cost: str = "auto",
    loss: str = "huber",
    max_iterations: int = 30,
    horizons: tuple[float, ...] | None = None,
    on_step: Callable[[Step], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fit:
    """Recover `unknowns` (name: start value) of a scene from observations.

    cost: "depth", "foot" or "auto" (depth where every point has its pixel). loss: "squares",
    "huber" or "tukey". horizons: shares of the recording to fit in turn (chosen by default).
    """
    if not unknowns:
        raise BadInput("Name at least one unknown, for example {'youngs_modulus': 2000.0}.")
    members = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in unknowns.items()))
    problem = Problem(scene, seen, members, cost=cost, progress=progress)
    start = members.start()
    if len(start) <= MOST_TANGENTS:
        mismatch = problem.gradient_mismatch(start, Loss(scene.body.spacing))
        if mismatch > GRADIENT_MISMATCH:
            raise SolverFailure(
                f"Tangent and adjoint gradients differ by {mismatch:.1e}; a fit would go astray. "
                "Lower the scene's tolerance, and see `pliant check-gradients`."
            )
    fitter = _LevenbergMarquardt(problem, loss, max_iterations, on_step)
    return fitter.run(horizons)


class _LevenbergMarquardt:
    def __init__(self, problem: Problem, loss: str, max_iterations: int, on_step):
        self.problem, self.loss_kind = problem, loss
        self.max_iterations, self.on_step = max_iterations, on_step
        self.history: list[Step] = []
        self.iterations = 0
        self.damping = 1e-3
        self.spacing = problem.scene.body.spacing

    def run(self, horizons: tuple[float, ...] | None) -> Fit:
        began = time.perf_counter()
        p = self.problem
        q = p.unknowns.start()
        start = dict(zip(p.unknowns.labels, p.unknowns.values(q).tolist(), strict=True))
        sigma = p.seen.noise or 0.0
        if horizons is None:
            whole = p.evaluate(q, self._loss(self.spacing))
            horizons = (1.0,) if whole.spread < NEAR * self.spacing else HORIZONS
            first = whole if len(horizons) == 1 else None
        else:
            first = None
        converged = False
        evaluation = first
        for share in horizons:
            horizon = max(2, round(share * p.last_step))
            final = share == horizons[-1]
            q, evaluation, converged = self._fit(q, horizon, sigma, final, evaluation)
            evaluation = evaluation if final else None
        assert evaluation is not None
        return self._result(q, evaluation, start, converged, began)

    def _loss(self, sigma: float) -> Loss:
        return Loss(max(sigma, 1e-9 * self.spacing), self.loss_kind)

    def _fit(self, q, horizon, sigma, final, current):
        p = self.problem
        scale = sigma
        if current is None:
            current = p.evaluate(q, self._loss(self.spacing), horizon=horizon)
        while True:
            # the robust scale follows the residuals down to the noise
            scale = max(sigma, min(current.spread, self.spacing))
            loss = self._loss(scale)
            current = self._rescaled(current, loss, horizon)
            self._log(current, horizon)
            if self.iterations >= self.max_iterations:
                return q, current, False
            moved, current, length = self._step(current, current.loss, horizon)
            if moved is None:
                return q, current, True
            q = moved
            enough = STEP_TOLERANCE if final else 0.5
            if length < enough and (current.spread <= 1.2 * scale or length < 1e-3):
                self._log(current, horizon)
                return q, current, True

    def _rescaled(self, e: Evaluation, loss: Loss, horizon: int) -> Evaluation:
        """The evaluation under another scale."""
        if self.problem.cost_name == "foot":  # its curvature correction depends on the scale
            same = abs(e.loss.sigma - loss.sigma) < 0.2 * loss.sigma
            return e if same else self.problem.evaluate(e.q, loss, horizon=horizon)
        return e.under(loss)

    def _step(self, e: Evaluation, loss: Loss, horizon: int):
        """One accepted step: (q, evaluation, length in standard deviations), or (None, e, 0)."""
        _, g, H = e.model
        scaling = np.maximum(np.diag(H), 1e-12 * max(np.diag(H).max(), 1e-300))
        for _ in range(8):
            dq = -np.linalg.solve(H + self.damping * np.diag(scaling), g)
            dq = np.clip(dq, -1.0, 1.0)  # one e-fold a step is as far as a linearisation reaches
            length = float(np.sqrt(max(dq @ H @ dq, 0.0)))
            if np.abs(dq).max() < 1e-9:
                return None, e, 0.0
            try:
                trial = self.problem.evaluate(e.q + dq, loss, horizon=horizon)
            except SolverFailure as failure:
                log.info("step refused: %s", failure)
                self.damping = max(self.damping, 1e-2) * 10.0
                continue
            self.iterations += 1
            # within a standard deviation the model beats a cost with pixels coming and going
            if length < 1.0 or trial.rise_from(e) <= 1e-12 * e.cost:
                self.damping = max(self.damping / 10.0, 1e-9)
                return trial.q, trial, length
            self.damping = max(self.damping, 1e-4) * 10.0
        return None, e, 0.0

    def _log(self, e: Evaluation, horizon: int) -> None:
        p = self.problem
        values = dict(zip(p.unknowns.labels, p.unknowns.values(e.q).tolist(), strict=True))
        step = Step(self.iterations, horizon, e.cost, e.rms, values)
        if self.history and self.history[-1].values == values:
            return
        self.history.append(step)
        if self.on_step is not None:
            self.on_step(step)

    def _result(self, q, e: Evaluation, start, converged, began) -> Fit:
        p = self.problem
        labels = p.unknowns.labels
        noise = p.seen.noise or e.spread
        final = self._rescaled(e, self._loss(noise), p.last_step)
        _, _, H = final.model
        covariance_q = _covariance(H)
        slopes = p.unknowns.slopes(q)
        covariance = slopes[:, None] * covariance_q * slopes[None, :]
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        correlation = covariance / np.maximum(np.outer(sigma, sigma), 1e-300)
        values = dict(zip(labels, p.unknowns.values(q).tolist(), strict=True))
        sigmas = dict(zip(labels, sigma.tolist(), strict=True))
        advice = advise(p, q, final, covariance_q, noise)
        return Fit(
            labels=labels, start=start, values=values, sigma=sigmas, correlation=correlation,
            history=self.history, advice=advice, noise=noise, rms=final.rms,
            iterations=self.iterations, seconds=time.perf_counter() - began, converged=converged,
            covariance=covariance, frame_rms=final.frame_rms,
        )  # fmt: skip


def _covariance(H: np.ndarray) -> np.ndarray:
    """Inverse of the Hessian; singular directions get a huge variance."""
    values, vectors = np.linalg.eigh(H)
    floor = 1e-14 * max(values.max(), 1e-300)
    inverse = 1.0 / np.maximum(values, floor)
    return (vectors * inverse) @ vectors.T
