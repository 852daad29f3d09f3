"""How noisy a depth film is, by camera and by depth.

Axial noise grows with the distance of what is seen; of a structured-light camera as

    sigma_c(z) = a_c + b_c (z - z_c)^2,        b_c >= 0,

(Nguyen, Izadi and Lovell 2012, who find a = 1.2 mm, b = 1.9 mm / m^2 and z = 0.4 m for one), z the
depth and z_c here the nearest of camera c's own. It is estimated from the residuals of a fit: a
camera's are sorted by depth and cut into bins, and the robust size s_i of the n_i in each bin is
known to a variance of 1.36 / n_i of its logarithm (1.4826 times the median size, of Gauss' noise).

One sigma for all is kept unless several are surely better: the sum of squares of what a model
leaves of log s_i, in these variances, must fall by more than chance makes it fall in one of a
thousand films, and the largest sigma must be 1.2 times the smallest. Both are asked again before
depth counts.
"""

from dataclasses import dataclass

import numpy as np

CHANCE = 1e-3
"""Probability that noise which is one and the same looks like several."""

DIFFERENT = 1.2
"""Largest over smallest sigma below which weights gain less than a percent of an error bar."""

BINS, FEWEST = 8, 60
"""Of a camera, and residuals in each."""

VARIANCE = 1.36
"""Of log(robust size), times the count."""

FARTHEST = 10.0
"""Times below the typical one that a sigma may lie: a camera that saw little noise by luck."""


@dataclass(frozen=True)
class DepthNoise:
    """near, far (c,): depths [m] between which camera c was judged; base (c,) a [m]; growth (c,) b
    [1/m]; typical [m]: of all residuals, what a weight of one means.
    """

    base: np.ndarray
    growth: np.ndarray
    near: np.ndarray
    far: np.ndarray
    typical: float

    def sigma(self, camera: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """(n,) [m]; beyond the depths that were judged, that of the nearest judged one."""
        z = np.clip(depth, self.near[camera], self.far[camera]) - self.near[camera]
        found = self.base[camera] + self.growth[camera] * z**2
        return np.maximum(found, self.typical / FARTHEST)

    def weights(self, camera: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """(n,) factors that give all residuals the typical size."""
        return self.typical / self.sigma(camera, depth)

    @property
    def key(self) -> tuple[float, ...]:
        """All its numbers."""
        parts = (self.base, self.growth, self.near, self.far, [self.typical])
        return tuple(float(x) for part in parts for x in part)

    def rows(self) -> list[dict[str, float]]:
        """Per camera: sigma at its nearest and farthest depth, and the formula's numbers."""
        count = np.arange(len(self.base))
        ends = [self.sigma(count, z) for z in (self.near, self.far)]
        return [
            {
                "camera": k, "sigma_near": float(ends[0][k]), "sigma_far": float(ends[1][k]),
                "base": float(self.base[k]), "growth": float(self.growth[k]),
                "near": float(self.near[k]), "far": float(self.far[k]),
            }
            for k in range(len(self.base))
        ]  # fmt: skip


def depth_noise(
    camera: np.ndarray, depth: np.ndarray, residual: np.ndarray, cameras: int
) -> DepthNoise | None:
    """The noise of residuals [m] at depths of cameras; None where one sigma does as well."""
    from scipy.stats import chi2

    typical = _size(residual)
    if not typical > 0.0:
        return None
    bins = [_bins(depth[camera == c], residual[camera == c]) for c in range(cameras)]
    filled = [b for b in bins if len(b)]
    if not filled:
        return None
    rows = np.concatenate(filled)
    one = np.full(cameras, _mean(rows))
    several = np.array([_mean(b) if len(b) else typical for b in bins])
    none = np.zeros(cameras)
    near = np.array([b[0, 0] if len(b) else 0.0 for b in bins])
    far = np.array([b[-1, 0] if len(b) else 0.0 for b in bins])
    best, chosen = _left(bins, one, none, near), None
    base, growth = np.stack(
        [_grown(b, s) if len(b) else (s, 0.0) for b, s in zip(bins, several, strict=True)], axis=1
    )
    numbers = 1
    for a, b in ((several, none), (base, growth)):
        more = len(filled) + int((b > 0.0).sum())
        found = DepthNoise(a, b, near, far, typical)
        left = _left(bins, a, b, near)
        sizes = np.concatenate([a[[len(x) > 0 for x in bins]], (a + b * (far - near) ** 2)])
        sizes = sizes[sizes > 0.0]
        sure = more > numbers and chi2.sf(max(best - left, 0.0), more - numbers) < CHANCE
        if sure and sizes.max() > DIFFERENT * sizes.min():
            best, chosen, numbers = left, found, more
    return chosen


def _size(r: np.ndarray) -> float:
    """Robust standard deviation."""
    return float(1.4826 * np.median(np.abs(r))) if len(r) else 0.0


def _bins(depth: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """(bins, 3): median depth, robust size, count; near ones first."""
    count = min(BINS, len(depth) // FEWEST)
    if not count:
        return np.zeros((0, 3))
    order = np.argsort(depth, kind="stable")
    parts = [
        (np.median(depth[k]), _size(residual[k]), len(k)) for k in np.array_split(order, count)
    ]
    return np.array([p for p in parts if p[1] > 0.0]).reshape(-1, 3)


def _mean(rows: np.ndarray) -> float:
    """The one sigma that leaves least of the logarithms."""
    return float(np.exp(np.average(np.log(rows[:, 1]), weights=rows[:, 2])))


def _grown(rows: np.ndarray, flat: float) -> tuple[float, float]:
    """a and b of a camera, by least squares of relative errors; flat where b would not be
    positive.
    """
    if len(rows) < 3:
        return flat, 0.0
    x = (rows[:, 0] - rows[0, 0]) ** 2
    w = np.sqrt(rows[:, 2]) / rows[:, 1]
    a, b = np.linalg.lstsq(w[:, None] * np.stack([np.ones(len(x)), x], 1), w * rows[:, 1])[0]
    return (float(a), float(b)) if a > 0.0 and b > 0.0 else (flat, 0.0)


def _left(bins: list[np.ndarray], a: np.ndarray, b: np.ndarray, near: np.ndarray) -> float:
    """Sum of squares of log(size / sigma), in their variances."""
    total = 0.0
    for c, rows in enumerate(bins):
        if len(rows):
            sigma = a[c] + b[c] * (rows[:, 0] - near[c]) ** 2
            total += float(rows[:, 2] @ np.log(rows[:, 1] / sigma) ** 2) / VARIANCE
    return total
