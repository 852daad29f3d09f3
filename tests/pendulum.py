"""A pendulum as a model of its own: nothing outside this file knows how it swings."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import pliant as pl

ROD = pl.GridBody(pl.shapes.box(center=(0, -0.5, 0), size=(0.2, 1.0, 0.2)), 0.1)
G = 9.81


@pl.world("pendulum")
@dataclass(frozen=True)
class Swing(pl.SmallWorld):
    """A rigid rod that swings about the origin like a point at `length` [m] below it."""

    body: Any = ROD
    length: float = 0.7
    dt: float = 0.02
    angle: float = 1.0
    unknowns = {"length": ("m", "positive"), "angle": ("rad", "plain")}

    def start(self):
        return {"angle": self.angle, "speed": 0.0}

    def advance(self, angle, speed):
        speed = speed - self.dt * G / self.length * np.sin(angle)
        return {"angle": angle + self.dt * speed, "speed": speed}

    def points(self, angle, speed):
        c, s, rest = np.cos(angle), np.sin(angle), self.body.nodes
        x = rest @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        return x - rest, speed * x @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0]])

    def energies(self, angle, speed):
        kinetic = 0.5 * (self.length * speed) ** 2
        return pl.Energies(kinetic=kinetic, gravity=-G * self.length * np.cos(angle))
