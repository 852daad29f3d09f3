"""The misfit at one value of the unknowns, and the Gauss-Newton model of the cost around it."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit


def rms(r: np.ndarray) -> float:
    """Root mean square of residuals, 0 for none."""
    return float(np.sqrt(np.mean(r**2))) if len(r) else 0.0


def robust_size(r: np.ndarray) -> float:
    """Robust standard deviation of residuals: 1.4826 times the median size; 0 for none."""
    return float(1.4826 * np.median(np.abs(r))) if len(r) else 0.0


@dataclass(frozen=True)
class Evaluation:
    """The misfit at q, frame by frame; costs and Gauss-Newton models follow for any loss."""

    q: np.ndarray
    loss: Loss
    frames: dict[int, FrameMisfit] = field(repr=False)
    frame_count: int = 0
    prior: tuple[float, np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    def under(self, loss: Loss) -> "Evaluation":
        """The same misfit judged by another loss."""
        return replace(self, loss=loss)

    @cached_property
    def model(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Cost = sum rho(r) over the usable points + priors, gradient (p,) and Hessian (p, p)."""
        p = next(iter(self.frames.values())).J.shape[1] if self.frames else 0
        cost, g, H = 0.0, np.zeros(p), np.zeros((p, p))
        for f in self.frames.values():
            value, weight = self.loss(f.r)
            weight = np.where(f.usable, weight, 0.0)
            cost += float(value[f.usable].sum())
            g += f.J.T @ (weight * f.r)
            H += f.J.T @ (weight[:, None] * f.J)
        if self.prior is not None:
            cost += self.prior[0]
            if p:
                g += self.prior[1]
                H += np.diag(self.prior[2])
        return cost, g, H

    @property
    def has_tangents(self) -> bool:
        """True if the derivatives by q are known."""
        return any(f.J.shape[1] for f in self.frames.values())

    def until(self, frames: set[int]) -> "Evaluation":
        """The misfit of some of the frames only."""
        return replace(self, frames={k: f for k, f in self.frames.items() if k in frames})

    def predicted(self, dq: np.ndarray) -> "Evaluation":
        """The misfit at q + dq by its own linearisation."""
        frames = {k: FrameMisfit(f.r + f.J @ dq, f.J, f.usable) for k, f in self.frames.items()}
        prior = self.prior
        if prior is not None:
            c, g, h = prior
            prior = (c + float(g @ dq + 0.5 * (h * dq) @ dq), g + h * dq, h)
        return replace(self, q=self.q + dq, frames=frames, prior=prior)

    @property
    def cost(self) -> float:
        """Sum of the losses [1]."""
        return self.model[0]

    def rise_from(self, before: "Evaluation") -> float:
        """Change of the cost against another evaluation, over the points usable in both."""
        total = 0.0
        if self.prior is not None and before.prior is not None:
            total = self.prior[0] - before.prior[0]
        for k, f in self.frames.items():
            both = f.usable & before.frames[k].usable
            total += float((self.loss(f.r)[0] - self.loss(before.frames[k].r)[0])[both].sum())
        return total

    @cached_property
    def usable(self) -> np.ndarray:
        """All usable residuals [m]."""
        parts = [f.r[f.usable] for f in self.frames.values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def rms(self) -> float:
        """Root mean square of the residuals [m]."""
        return rms(self.usable)

    @property
    def spread(self) -> float:
        """Robust standard deviation of the residuals [m]."""
        return robust_size(self.usable)

    @property
    def worst_spread(self) -> float:
        """The largest of the frames' robust standard deviations [m]: a late frame may be far off
        while most are near.
        """
        return max((robust_size(f.r[f.usable]) for f in self.frames.values()), default=0.0)

    @property
    def frame_rms(self) -> np.ndarray:
        """Root mean square of each frame's residuals [m], zero for frames without any."""
        out = np.zeros(self.frame_count)
        for k, f in self.frames.items():
            out[k] = rms(f.r[f.usable])
        return out
