"""Held regions and loads of a scene turned into numbers: masks, wall terms and nodal forces."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.compatible import Compatible
from pliant.dynamics.loads import BodyForce, Fixed, Load, Motion, PointLoad, Pressure, Traction
from pliant.dynamics.scene import Scene, vector3
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.quadrature import FacetPoints, covered_points
from pliant.fem.cutting.walls import Hold, Walls, build_walls


@dataclass(frozen=True)
class HeldNodes:
    """Strongly held components: of `nodes` (h,), where `axes` (h, 3) is 1."""

    number: int
    fixed: Fixed
    nodes: np.ndarray
    axes: np.ndarray


@dataclass(frozen=True)
class SpringBed:
    """A clamp that gives: `number` in the scene, and the quadrature points of what it holds."""

    number: int
    fixed: Fixed
    points: FacetPoints


@dataclass(frozen=True)
class Boundary:
    """free: (nodes, 3) of 1 or 0. walls: weak walls; wall_parts: number in the scene and quadrature
    points of each. springs: clamps that give.

    driven: how a caller moves held regions, by their number in the scene, beyond what they do by
    themselves; its owner changes it from step to step.
    """

    scene: Scene
    free: np.ndarray
    held: list[HeldNodes]
    walls: Walls | None
    wall_parts: list[tuple[int, Fixed, slice]]
    loads: list[tuple[Load, np.ndarray]]
    springs: list[SpringBed] = field(default_factory=list)
    driven: dict[int, Motion] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """True if loads or walls depend on time."""
        weak = [f for _, f, _ in self.wall_parts] + [bed.fixed for bed in self.springs]
        moving_walls = bool(self.driven) or any(f.moves for f in weak)
        moving_loads = any(
            load.history is not None or (isinstance(load, BodyForce) and callable(load.force))
            for load, _ in self.loads
        )
        return moving_walls or moving_loads

    @cached_property
    def compatible(self) -> Compatible:
        """Makes a field of velocities or accelerations one that the walls allow."""
        return Compatible(self.free, self.walls)

    @property
    def held_moves(self) -> bool:
        """True if strongly held nodes move."""
        return bool(self.held) and (bool(self.driven) or any(h.fixed.moves for h in self.held))

    def prescribed(self, t: float) -> np.ndarray:
        """Displacement (nodes, 3) of the strongly held components at time t, zero elsewhere."""
        out = np.zeros((len(self.free), 3))
        for h in self.held:
            value = self._given(h.number, h.fixed, self.scene.body.nodes[h.nodes], t)
            out[h.nodes] = np.where(h.axes > 0.0, value, out[h.nodes])
        return out

    def given_on_walls(self, t: float) -> np.ndarray:
        """Given displacement (q, 3) at the walls' quadrature points."""
        assert self.walls is not None
        position = self.walls.position
        return np.concatenate([
            self._given(number, f, position[part], t) for number, f, part in self.wall_parts
        ])  # fmt: skip

    def given_on(self, bed: SpringBed, t: float) -> np.ndarray:
        """Given displacement (q, 3) at the quadrature points of a clamp that gives."""
        return self._given(bed.number, bed.fixed, bed.points.position, t)

    def given_at_wall_nodes(self, t: float) -> np.ndarray | None:
        """Given displacement (w, k, 3) at the nodes of the walls' cells; None if it is zero."""
        assert self.walls is not None
        nodes = self.scene.body.nodes[self.scene.body.cells[self.walls.cell]]
        out = np.zeros((*nodes.shape[:2], 3))
        for number, f, part in self.wall_parts:
            held = np.unique(self.walls.point_entry[part])
            points = nodes[held].reshape(-1, nodes.shape[2])
            out[held] = self._given(number, f, points, t).reshape(len(held), -1, 3)
        return out if np.any(out) else None

    def _given(self, number: int, fixed: Fixed, points: np.ndarray, t: float) -> np.ndarray:
        """Where a region holds its points, (points, 3)."""
        out = fixed.at(points, t)
        if number in self.driven:
            moved = self.driven[number](points, t)
            out[:, : moved.shape[1]] += moved
        return out

    def wall_forces(self, lam: np.ndarray, mu: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Nodal forces (nodes, 3) of a given wall displacement (q, 3)."""
        out = np.zeros((len(self.free), 3))
        if self.walls is not None and np.any(given):
            loads = self.walls.loads(lam, mu, given)
            np.add.at(out, self.scene.body.cells[self.walls.cell], loads)
        return out

    def load_forces(self, t: float) -> np.ndarray:
        """Nodal forces (nodes, 3) of all loads (not gravity) at time t."""
        out = np.zeros((len(self.free), 3))
        for load, spread in self.loads:
            factor = 1.0
            if load.history is not None:
                factor = float(load.history(np.zeros((1, 1)), t)[0, 0])
            if isinstance(load, BodyForce) and callable(load.force):
                nodes = self.scene.body.nodes
                value = np.zeros((len(nodes), 3))
                value[:, : self.scene.dim] = load.force(nodes, t)
                out += factor * _consistent_mass_product(self.scene.body, value)
            else:
                out += factor * spread
        return out


def build_boundary(scene: Scene, *, hold: Hold = "linear") -> Boundary:
    """A scene's regions on its body's surface; hold: see fem.cutting.walls."""
    body = scene.body
    free = np.ones((len(body.nodes), 3))
    free[:, body.dim :] = 0.0
    held: list[HeldNodes] = []
    pieces: list[tuple[int, Fixed, FacetPoints]] = []
    springs: list[SpringBed] = []
    for number, fixed in enumerate(scene.fixed):
        if body.is_grid or fixed.stiffness is not None:
            points = covered_points(body, fixed.place)
            if len(points.cell) == 0:
                raise BadInput(_touches_nothing("fixed", number))
            if fixed.stiffness is None:
                pieces.append((number, fixed, points))
            else:
                springs.append(SpringBed(number, fixed, points))
        else:
            surface_nodes = np.unique(body.surface.points.nodes)
            reach = 1e-9 * body.spacing  # a region that ends on a face still holds its nodes
            inside = fixed.place.distance(body.nodes[surface_nodes]) <= reach
            if not inside.any():
                raise BadInput(_touches_nothing("fixed", number))
            nodes = surface_nodes[inside]
            axes = np.broadcast_to(fixed.mask(), (len(nodes), 3)).copy()
            axes[:, body.dim :] = 0.0
            held.append(HeldNodes(number, fixed, nodes, axes))
            free[nodes] = np.where(axes > 0.0, 0.0, free[nodes])
    walls = None
    if pieces:
        mask = np.array([1.0] * body.dim + [0.0] * (3 - body.dim))
        walls = build_walls(
            body, [(p, f.mask() * mask) for _, f, p in pieces], dilatation=scene.dilatation,
            hold=hold,
        )  # fmt: skip
    ends = np.cumsum([0, *(len(p.cell) for _, _, p in pieces)])
    parts = [(n, f, slice(ends[k], ends[k + 1])) for k, (n, f, _) in enumerate(pieces)]
    loads = [(load, spread(load, number, body)) for number, load in enumerate(scene.loads)]
    return Boundary(scene, free, held, walls, parts, loads, springs)


def _touches_nothing(kind: str, number: int) -> str:
    return (
        f"{kind}[{number}]: the region touches no part of the body's surface; move or enlarge it."
    )


NEAR = 0.5
"""Cells that a load's point may lie outside: points on a surface are given with few digits."""


def spread(load: Load, number: int, body: Body) -> np.ndarray:
    """Nodal forces (nodes, 3) of a load at factor one."""
    out = np.zeros((len(body.nodes), 3))
    if isinstance(load, PointLoad):
        point = np.asarray(load.point, float)[: body.dim]
        at = body.locate(point[None])
        gap = float(np.linalg.norm(at.weights[0] @ body.nodes[at.nodes[0]] - point))
        if not gap <= NEAR * body.spacing or np.abs(at.weights[0]).max() > 1.0 + NEAR:
            raise BadInput(f"loads[{number}].point: it lies outside of the body; move it inside.")
        np.add.at(out, at.nodes[0], at.weights[0][:, None] * vector3("force", load.force))
        return out
    if isinstance(load, BodyForce):
        if callable(load.force):
            return out
        volumes = np.bincount(body.cells.ravel(), body.node_volumes.ravel(), len(body.nodes))
        return volumes[:, None] * vector3("force", load.force)
    chosen = covered_points(body, load.region)
    if len(chosen.cell) == 0:
        raise BadInput(_touches_nothing("loads", number))
    traction = np.zeros((len(chosen.cell), 3))
    if isinstance(load, Traction):
        force = load.force
        if callable(force):
            traction[:, : body.dim] = force(chosen.position, chosen.normal[:, : body.dim])
        else:
            traction[:] = vector3("force", force)
    elif isinstance(load, Pressure):
        traction = -load.pressure * chosen.normal
    nodal = np.einsum("q,qa,qi->qai", chosen.weight, chosen.shape, traction)
    np.add.at(out, body.cells[chosen.cell], nodal)
    return out


def _consistent_mass_product(body: Body, value: np.ndarray) -> np.ndarray:
    """Integral of N_a f over the body, f at each cell's filled centroid (second order)."""
    mean = np.einsum("ca,cai->ci", body.node_volumes, value[body.cells])
    mean /= np.maximum(body.cell_volumes, 1e-300)[:, None]
    out = np.zeros((len(body.nodes), 3))
    np.add.at(out, body.cells, body.node_volumes[:, :, None] * mean[:, None, :])
    return out
