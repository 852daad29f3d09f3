"""Unknowns of the scene around the body: gravity, ground, contact, initial motion."""

from dataclasses import replace

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene
from pliant.inverse.unknown import OnSphere, Positive, Unknown, extent, zero_direction


class Gravity(Unknown):
    """The gravity vector."""

    def size_of(self, value, scene, duration):
        return np.full(self.size, max(float(np.linalg.norm(value)), 1.0))

    def apply(self, scene, q):
        return replace(scene, gravity=tuple(float(c) for c in q))

    def directions(self, system, q):
        out = []
        for axis in range(self.size):
            d = zero_direction(system)
            d.gravity[axis] = 1.0
            out.append(d)
        return out


class GravityDirection(OnSphere):
    """Where gravity points; its strength stays the scene's."""

    def apply(self, scene, q):
        strength = float(np.linalg.norm(scene.gravity))
        return replace(scene, gravity=tuple(strength * self.normal(q)))

    def directions(self, system, q):
        strength = float(np.linalg.norm(system.scene.gravity))
        out = []
        for slope in self.normal_slopes(q):
            d = zero_direction(system)
            d.gravity = strength * slope
            out.append(d)
        return out


class GroundNormal(OnSphere):
    """Normal of the first plane."""

    def apply(self, scene, q):
        plane = _first_plane(scene)
        moved = replace(scene.obstacles[plane], normal=tuple(self.normal(q)))
        return _with_obstacle(scene, plane, moved)

    def directions(self, system, q):
        out = []
        for slope in self.normal_slopes(q):
            d = zero_direction(system)
            d.normal[_first_plane(system.scene)] = slope
            out.append(d)
        return out


class GroundOffset(Unknown):
    """Offset of the first plane along its normal."""

    def size_of(self, value, scene, duration):
        return np.full(1, extent(scene))

    def apply(self, scene, q):
        plane = _first_plane(scene)
        return _with_obstacle(scene, plane, replace(scene.obstacles[plane], offset=float(q[0])))

    def directions(self, system, q):
        d = zero_direction(system)
        d.offset[_first_plane(system.scene)] = 1.0
        return [d]


class ContactStiffness(Positive):
    """Stiffness of the contact springs."""

    def apply(self, scene, q):
        return replace(scene, contact=replace(scene.contact, stiffness=float(np.exp(q[0]))))

    def directions(self, system, q):
        d = zero_direction(system)
        d.contact_stiffness = float(np.exp(q[0]))
        return [d]


class InitialMotion(Unknown):
    """initial_velocity or initial_spin."""

    def size_of(self, value, scene, duration):
        way = extent(scene) if self.name == "initial_velocity" else 1.0
        return np.full(self.size, max(float(np.linalg.norm(value)), way / duration))

    def apply(self, scene, q):
        return replace(scene, **{self.name: tuple(float(c) for c in q)})

    def directions(self, system, q):
        out = []
        for axis in range(self.size):
            unit = np.zeros(3)
            unit[axis] = 1.0
            d = zero_direction(system)
            if self.name == "initial_velocity":
                d.velocity[:] = unit
            else:
                d.velocity[:] = np.cross(unit, system.arms())
            d.velocity *= system.boundary.free
            out.append(d)
        return out


def _first_plane(scene: Scene) -> int:
    for k, o in enumerate(scene.obstacles):
        if isinstance(o, Plane):
            return k
    raise BadInput("The ground is unknown, but the scene has no plane: add obstacles=[Plane()].")


def _with_obstacle(scene: Scene, index: int, obstacle) -> Scene:
    obstacles = list(scene.obstacles)
    obstacles[index] = obstacle
    return replace(scene, obstacles=tuple(obstacles))
