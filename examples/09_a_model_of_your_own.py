"""A model of one's own: is a ball that rolls down a slope solid or hollow?

Without slipping it gathers speed at g sin(slope) / (1 + k), k its moment of inertia over m r^2: 2/5
for a solid ball, 2/3 for a shell. The model is a start, a step and the points that are seen;
derivatives are made of them by complex steps. A solid ball is filmed, the fit begins with a shell
and must come to 2/5 within three of its own sigmas.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import pliant as pl

RADIUS = 0.1


@pl.world("rolling-ball")
@dataclass(frozen=True)
class RollingBall(pl.SmallWorld):
    """A ball on a slope [rad] towards +x; inertia: over m r^2."""

    body: Any = pl.GridBody(pl.shapes.sphere(radius=RADIUS), spacing=0.025)
    inertia: float = 0.4
    slope: float = 0.35
    dt: float = 0.02
    unknowns = {"inertia": ("", "positive")}

    def start(self):
        """At rest."""
        return {"way": 0.0, "speed": 0.0}

    def advance(self, way, speed):
        """Gathers speed evenly, so this is exact."""
        gain = self.dt * 9.81 * np.sin(self.slope) / (1.0 + self.inertia)
        return {"way": way + self.dt * (speed + 0.5 * gain), "speed": speed + gain}

    def points(self, way, speed):
        """Down the slope, and turned by way / radius."""
        c, s, rest = np.cos(way / RADIUS), np.sin(way / RADIUS), self.body.nodes
        down = np.array([np.cos(self.slope), -np.sin(self.slope), 0.0])
        turned = rest @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        around = turned @ np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        return turned - rest + way * down, speed * (down + around / RADIUS)


with open("ball.toml", "w", encoding="utf-8") as file:
    file.write('kind = "rolling-ball"\nsteps = 30\ninertia = 0.4\n')
ball = pl.load_scene("ball.toml")
run = pl.simulate(ball, 30)
seen = pl.observe(run, pl.ring_of_cameras(ball, 4, width=40, height=40), noise=0.005, seed=1)
fit = pl.reconstruct(ball, seen, {"inertia": 2.0 / 3.0})
print(fit)

found, sigma = fit.values["inertia"], fit.sigma["inertia"]
assert abs(found - 0.4) < 3.0 * sigma
assert sigma < 0.01
