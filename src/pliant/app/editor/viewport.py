"""The 3D view: the body as surface, cells, slice or stress; the ground, what is held; camera."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.app.editor.coloured_mesh import ColouredMesh
from pliant.app.editor.section import Section, cell_edges, facets_behind, filled, section
from pliant.app.editor.session import Session, held_points
from pliant.app.editor.theme import LIGHT, Theme
from pliant.core.vectors import in_space
from pliant.dynamics.constitution import Stress
from pliant.dynamics.obstacles import Obstacle, Plane
from pliant.fem.bodies.render_mesh import skin_of
from pliant.fem.forces.stress import to_nodes

BODY = (228, 148, 92)
CUT_CELL, HELD = (214, 90, 50), (200, 40, 60)

MOST_VERTICES = 100_000
"""Of a mesh that a body was made from, up to which it is drawn instead of the body's own surface:
every frame is sent to the pages, 1.2 MB of it."""

WIRE_SECONDS = 0.2
"""Between drawings of the cells: thousands of lines are slower to send than the surface."""


@dataclass
class Look:
    """What is shown."""

    surface: bool = True
    cells: bool = False
    cut_only: bool = False
    held: bool = True
    colour: str = "plain"
    slice_axis: str = "off"
    slice_at: float = 0.5
    scale_automatic: bool = True
    scale_top: float = 1.0
    follow: bool = False


class Viewport:
    """Draws a session's body at a displacement."""

    def __init__(self, server: Any, session: Session):
        self._scene, self._server, self._session = server.scene, server, session
        self.look = Look()
        self.theme = LIGHT
        self.top = 0.0  # of the colour scale
        self._u: np.ndarray | None = None
        self._surface: Any = None
        self._outline: Any = None
        self._skin = Section(session.body.surface.points, session.body.surface.facets)
        self._plain_faces = np.zeros((0, 3), np.int64)
        self._wire: Any = None
        self._held: Any = None
        self._colours = ColouredMesh(self._scene, "/body/stress")
        self._slice_colours = ColouredMesh(self._scene, "/body/slice_stress")
        self._slice: Any = None
        self._section: Section | None = None
        self._section_of: Any = None
        self._stress: Stress | None = None
        self._others: list[Any] = []
        self._drawn_wire = 0.0
        self._followed: np.ndarray | None = None
        self.on_surface_made: Any = lambda handle: None
        self._scene.set_up_direction("+y")
        self.set_shadows(True)
        self._scene.world_axes.visible = False

    def set_shadows(self, shown: bool) -> None:
        """Draw shadows, which cost more than the rest together in software."""
        self._scene.configure_default_lights(enabled=True, cast_shadow=shown)

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme, the page's panel too."""
        self.theme = theme
        theme.dress(self._server.gui)
        if self._surface is None:
            return
        if self._outline is not None:
            self._outline.colors = theme.outline
        if self._wire is not None:  # its colours are sent when it is made
            self._wire.remove()
            self._wire = None
        self._draw_obstacles()
        self.redraw()

    # --- what belongs to the body

    def new_body(self) -> None:
        """Draw another body from scratch."""
        for handle in (self._surface, self._outline, self._wire, self._held, self._slice):
            if handle is not None:
                handle.remove()
        self._colours.remove()
        self._slice_colours.remove()
        self._surface = self._outline = self._wire = self._held = self._slice = None
        self._section = self._section_of = None
        self._u = None
        body = self._session.body
        self._edges, self._of_cut = cell_edges(body)
        self._place_ground()
        self._make_surface()
        self.new_scene()
        self.frame_camera()

    def new_scene(self) -> None:
        """Draw what is held and what stands around again."""
        self._stress = None
        self._draw_obstacles()
        self._held_mask = held_points(self._session.scene)
        self._draw_held()
        self.redraw()

    def _make_surface(self) -> None:
        body = self._session.body
        rest = in_space(body.surface.positions(body.nodes))
        self._skin = Section(body.surface.points, body.surface.facets)
        mesh = skin_of(body) if body.dim == 3 else None
        if mesh is not None and len(mesh.points) <= MOST_VERTICES:
            self._skin = Section(mesh.points, mesh.triangles)
        if body.dim == 2:
            self._skin = filled(body)
            self._outline = self._scene.add_line_segments(
                "/body/outline", rest[body.surface.facets], self.theme.outline, thickness=2.0,
                thickness_units="screen",
            )  # fmt: skip
        self._plain_faces = self._skin.faces
        self._surface = self._scene.add_mesh_simple(
            "/body/surface", in_space(self._skin.points.at(body.nodes)), self._skin.faces,
            color=BODY, side="double", flat_shading=body.dim == 2,
        )  # fmt: skip
        self.on_surface_made(self._surface)

    def _place_ground(self) -> None:
        lo, hi = self._bounds()
        size = float((hi - lo).max())
        plane = next((o for o in self._session.scene.obstacles if isinstance(o, Plane)), None)
        height = lo[1] - 0.6 * size if plane is None else _height(plane)
        section_size = 10.0 ** np.floor(np.log10(size))
        self._scene.add_grid(
            "/ground", plane="xz", infinite_grid=True, fade_distance=8.0 * size,
            cell_size=section_size / 5.0, section_size=section_size, shadow_opacity=0.2,
            cell_color=self.theme.cell, section_color=self.theme.section, fade_strength=1.5,
            position=(0.0, float(height), 0.0), visible=plane is None or _is_level(plane),
        )  # fmt: skip

    def _draw_obstacles(self) -> None:
        for handle in self._others:
            handle.remove()
        self._others = []
        self._place_ground()
        lo, hi = self._bounds()
        size = float((hi - lo).max())
        for i, item in enumerate(self._session.scene.obstacles):
            if isinstance(item, Plane) and not _is_level(item):
                points, faces = _patch(item, 0.5 * (lo + hi), 2.5 * size)
            elif isinstance(item, Obstacle) and item.shape.dim == 3:
                points, faces = _outline(item.shape)
            else:
                continue
            self._others.append(self._scene.add_mesh_simple(
                f"/obstacles/{i}", points, faces, color=self.theme.obstacle, side="double",
                opacity=0.55, cast_shadow=False,
            ))  # fmt: skip

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        nodes = in_space(self._session.body.nodes)
        return nodes.min(axis=0), nodes.max(axis=0)

    def frame_camera(self) -> None:
        """Look at the body from the front, a little from above, in every page."""
        lo, hi = self._bounds()
        centre, size = 0.5 * (lo + hi), float(np.linalg.norm(hi - lo))
        flat = self._session.body.dim == 2
        direction = np.array([0.0, 0.0, 1.0]) if flat else np.array([0.45, 0.35, 0.82])
        position = centre + 1.15 * size * direction / np.linalg.norm(direction)
        at = centre - np.array([0.0, 0.08 * size, 0.0])
        camera = self._server.initial_camera
        camera.position, camera.look_at, camera.up = position, at, (0.0, 1.0, 0.0)
        for client in self._server.get_clients().values():
            client.camera.position, client.camera.look_at = position, at

    def _follow(self, middle: np.ndarray) -> None:
        """Move every page's camera along with the body's middle (3,), if asked to."""
        before, self._followed = self._followed, middle if self.look.follow else None
        if before is None or self._followed is None:
            return
        way = middle - before
        lo, hi = self._bounds()
        if np.linalg.norm(way) < 1e-3 * np.linalg.norm(hi - lo):
            self._followed = before  # small steps are saved up: each is a message to every page
            return
        for client in self._server.get_clients().values():
            camera = client.camera
            position, look_at = np.asarray(camera.position), np.asarray(camera.look_at)
            with client.atomic():
                camera.position, camera.look_at = position + way, look_at + way

    # --- frames

    def draw(self, u: np.ndarray | None) -> None:
        """Draw the body at a displacement (nodes, dim); None: at rest."""
        self._u = u
        body = self._session.body
        at = body.nodes if u is None else body.nodes + u
        points = in_space(body.surface.positions(at))
        self._follow(points.mean(axis=0))
        look = self.look
        if self._outline is not None:
            self._outline.points = points[body.surface.facets].astype(np.float32)
            _assign(self._outline, "visible", look.surface)
        self._draw_surface(in_space(self._skin.points.at(at)), u)
        _assign(self._surface, "visible", look.surface)
        if look.cells:
            self._draw_wire(at)
        elif self._wire is not None:
            _assign(self._wire, "visible", False)
        if self._held is not None:
            _assign(self._held, "visible", look.held)
            if look.held:
                self._held.points = points[self._held_mask].astype(np.float32)

    def redraw(self) -> None:
        """The same frame again, after the look has changed."""
        self._drawn_wire = 0.0
        if self._surface is not None:
            self.draw(self._u)

    def _draw_surface(self, points: np.ndarray, u: np.ndarray | None) -> None:
        body, look = self._session.body, self.look
        faces = self._skin.faces
        cut = self._cut()
        if cut is not None:
            faces = faces[facets_behind(body, self._skin, *cut)]
        if faces is not self._plain_faces and not np.array_equal(faces, self._plain_faces):
            self._plain_faces = faces
            self._surface.faces = faces.astype(np.uint32)
        # under colours the plain surface stays, unseen: the mouse takes hold of it
        plain = look.colour == "plain"
        _assign(self._surface, "opacity", None if plain else 0.0)
        _assign(self._surface, "cast_shadow", plain)  # two at one place would speckle
        self._surface.vertices = points.astype(np.float32)
        if look.colour == "plain":
            self._colours.hide()
            self._slice_colours.hide()
            self._draw_slice(u, None)
            return
        nodal = self._nodal_values(u)
        self.top = float(np.quantile(nodal, 0.995)) if look.scale_automatic else look.scale_top
        scale = 1.0 / self.top if self.top > 0.0 else 0.0
        if look.surface:
            self._colours.show(points, faces, scale * self._skin.points.at(nodal))
        else:
            self._colours.hide()
        self._draw_slice(u, scale * nodal)

    def _nodal_values(self, u: np.ndarray | None) -> np.ndarray:
        """Von Mises stress [Pa] or displacement [m] at the nodes."""
        body, scene = self._session.body, self._session.scene
        u = np.zeros_like(body.nodes) if u is None else u
        if self.look.colour == "displacement":
            return np.linalg.norm(u, axis=1)
        self._stress = self._stress or scene.stress()
        return to_nodes(body, self._stress.at(u).von_mises)

    def _cut(self) -> tuple[int, float] | None:
        """Axis and place [m] of the slice."""
        look = self.look
        if look.slice_axis == "off" or self._session.body.dim == 2:
            return None
        axis = "xyz".index(look.slice_axis)
        lo, hi = self._bounds()
        return axis, float(lo[axis] + look.slice_at * (hi[axis] - lo[axis]))

    def _draw_slice(self, u: np.ndarray | None, values: np.ndarray | None) -> None:
        body, cut = self._session.body, self._cut()
        if cut != self._section_of:
            self._section_of = cut
            self._section = None if cut is None else section(body, *cut)
            if self._slice is not None:
                self._slice.remove()
                self._slice = None
        found = self._section
        if found is None:
            self._slice_colours.hide()
            return
        at = body.nodes if u is None else body.nodes + u
        points = found.points.at(at)
        if values is not None:
            self._slice_colours.show(points, found.faces, found.points.at(values))
            if self._slice is not None:
                self._slice.visible = False
            return
        self._slice_colours.hide()
        if self._slice is None:
            self._slice = self._scene.add_mesh_simple(
                "/body/slice", points, found.faces, color=(250, 214, 165), side="double",
                flat_shading=True, cast_shadow=False,
            )  # fmt: skip
        else:
            self._slice.vertices = points.astype(np.float32)
            self._slice.visible = True

    def _draw_wire(self, at: np.ndarray) -> None:
        now = time.monotonic()
        if self._wire is not None and now - self._drawn_wire < WIRE_SECONDS:
            return
        self._drawn_wire = now
        chosen = self._of_cut if self.look.cut_only else np.ones(len(self._edges), bool)
        cut = self._cut()
        if cut is not None:
            rest = self._session.body.nodes[self._edges, cut[0]].max(axis=1)
            chosen = chosen & (rest <= cut[1] + 1e-9)
        points = in_space(at)[self._edges[chosen]].astype(np.float32)
        kinds = np.where(self._of_cut[chosen, None], CUT_CELL, self.theme.full_cell)
        colours = kinds.astype(np.uint8)
        if self._wire is not None and len(self._wire.points) == len(points):
            self._wire.points = points
            self._wire.visible = True
            return
        if self._wire is not None:
            self._wire.remove()
        self._wire = self._scene.add_line_segments(
            "/body/cells", points, np.repeat(colours[:, None, :], 2, axis=1), thickness=1.2,
            thickness_units="screen",
        )  # fmt: skip

    def _draw_held(self) -> None:
        if self._held is not None:
            self._held.remove()
            self._held = None
        if not self._held_mask.any():
            return
        body = self._session.body
        points = in_space(body.surface.positions(body.nodes))[self._held_mask]
        self._held = self._scene.add_point_cloud(
            "/body/held", points, HELD, point_size=0.22 * body.spacing, point_shape="circle",
            precision="float32", visible=self.look.held,
        )  # fmt: skip

    def surface_points(self) -> np.ndarray:
        """The drawn surface points, (points, 3)."""
        body = self._session.body
        at = body.nodes if self._u is None else body.nodes + self._u
        return in_space(body.surface.positions(at))


def _assign(handle: Any, name: str, value: Any) -> None:
    """Set an attribute of a scene node if it differs: every assignment is sent to the pages."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)


def _is_level(plane: Plane) -> bool:
    return len(plane.normal) == 2 or plane.normal[1] > 0.9999


def _height(plane: Plane) -> float:
    return plane.offset / plane.normal[1] if plane.normal[1] else plane.offset


def _patch(plane: Plane, near: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """A square of a sloped plane under the body."""
    n = np.asarray(plane.normal)
    centre = near - (near @ n - plane.offset) * n
    along = np.cross(n, [0.0, 0.0, 1.0] if abs(n[2]) < 0.9 else [1.0, 0.0, 0.0])
    along /= np.linalg.norm(along)
    across = np.cross(n, along)
    corners = [centre + size * (s * along + t * across) for s, t in
               ((-1, -1), (1, -1), (1, 1), (-1, 1))]  # fmt: skip
    return np.array(corners), np.array([[0, 1, 2], [0, 2, 3]])


def _outline(shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of a shape's surface, at 24 cells across."""
    from pliant.fem.bodies.grid_body import grid_body

    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    body = grid_body(shape, float((hi - lo).max()) / 24.0)
    return body.surface.positions(body.nodes), body.surface.facets
