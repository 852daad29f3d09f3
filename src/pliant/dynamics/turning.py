"""A body's turn within a Newton step, made finite.

A linear solve only knows the velocity field of a turn, along which a body grows: by 1/2 angle^2 of
its size, which a stiff body does not allow. Along a straight step a light rubber cube of 2 cm turns
by a hundredth of a radian before its stiffness stops it, and takes forty such steps to roll over.
Here the rigid part of a step turns the body truly and the rest deforms it:

    x(t) = c + t s + R(t w) (y - c + t d),

c the centre of mass, s its shift, w the turn that the step has in the mean over the mass, d what
remains of the step.
"""

import numpy as np
import warp as wp

from pliant.core.launch import to_device


class TurningStep:
    """Newton's step dx from x, where displacements are `factor` x and something constant."""

    def __init__(self, path: "TurningPath", x: wp.array, factor: float):
        self._path, self._x, self._factor = path, x.numpy().copy(), factor

    def move(self, t: float, out: wp.array) -> None:
        """out = x at the point t of the step."""
        out.assign(self._x + self._path.displacement(t) / self._factor)

    def direction(self, t: float) -> wp.array:
        """dx/dt there."""
        return to_device(self._path.direction(t) / self._factor, wp.vec3d)


class TurningPath:
    """Displacements along a step from `position` (nodes, 3) by `step`, its turn finite."""

    def __init__(self, masses: np.ndarray, position: np.ndarray, step: np.ndarray):
        share = (masses / masses.sum())[:, None]
        self._arm = position - (share * position).sum(axis=0)
        self._shift = (share * step).sum(axis=0)
        momentum = (share * np.cross(self._arm, step)).sum(axis=0)
        self.turn = np.linalg.solve(_inertia(share, self._arm), momentum)
        turned = np.cross(self.turn, self._arm)
        self._rest = step - self._shift - turned
        about = float((share * (step - self._shift) ** 2).sum())
        self.share = float((share * turned**2).sum()) / max(about, 1e-300)
        """Of the turn in the square of the step, the shift apart: 1 for a rigid body."""

    def displacement(self, t: float) -> np.ndarray:
        """From the start to the point t of the path, (nodes, 3)."""
        turned = (self._arm + t * self._rest) @ _rotation(t * self.turn).T
        return turned - self._arm + t * self._shift

    def direction(self, t: float) -> np.ndarray:
        """The path's derivative by t."""
        rotation = _rotation(t * self.turn).T
        turned = (self._arm + t * self._rest) @ rotation
        return np.cross(self.turn, turned) + self._rest @ rotation + self._shift


def _inertia(share: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Tensor of inertia of a unit mass; regular for flat and straight bodies too."""
    second = arm.T @ (share * arm)
    trace = float(np.trace(second))
    return (1.0 + 1e-12) * trace * np.eye(3) - second


def _rotation(turn: np.ndarray) -> np.ndarray:
    """The matrix of a rotation vector (Rodrigues)."""
    x, y, z = turn
    W = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angle = float(np.sqrt(turn @ turn))
    if angle < 1e-8:
        return np.eye(3) + W
    half = np.sin(0.5 * angle) / angle
    return np.eye(3) + np.sin(angle) / angle * W + 2.0 * half * half * (W @ W)
