"""Draws the level set of a body in motion: its surface by sphere tracing, or a slice through it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pliant.app.render.colouring import Scale
from pliant.app.render.empty_stage import find_sliced
from pliant.app.render.field_march import Field, Volume, nodal_slopes
from pliant.app.render.field_rays import UNSEEN, draw_field
from pliant.app.render.footprints import ball_stretches, camera_projection, lamp_projection
from pliant.app.render.pixels import Unchanged, antialiased, find_uneven
from pliant.app.render.stage import Setting
from pliant.app.render.transfer import TransferFunction, distance_colours
from pliant.core.errors import BadInput
from pliant.core.launch import launch, share, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.forces.moving_field import MovingField
from pliant.levelset.advection import fill_holes, following_grid
from pliant.levelset.forward_advection import forward_advect

BAND = 3
"""Nodes of the band of samples around the body: what a kernel of 1.5 cells and a gradient need."""

BLOCK = 6
"""Pixels along the edge of a block whose rays start at the same distance; cells are larger."""

LEAST_FILL = 0.1
"""Filled share of a cell from which its values count among those that a slice shows."""

AXES = ("x", "y", "z", "camera")

Plane = tuple[np.ndarray, float]
"""Unit normal towards the camera, and normal . x on the plane."""


@dataclass(frozen=True)
class Cut:
    """A slice: across an axis at a coordinate [m], or facing the camera.

    at: along the axis, or towards the camera from the body's middle; through the body's middle if
    None. values: True to colour it by the picture's own quantity, else by `transfer`.
    """

    axis: str = "camera"
    at: float | None = None
    values: bool = False
    transfer: TransferFunction | None = None

    def __post_init__(self):
        if self.axis not in AXES:
            raise BadInput(f"A slice goes across one of {', '.join(AXES)}, not '{self.axis}'.")
        if self.at is not None and not np.isfinite(self.at):
            raise BadInput(f"The place of a slice must be a coordinate, not {self.at}.")

    def plane(self, forward: np.ndarray, middle: np.ndarray) -> Plane:
        """Where it lies, seen along `forward`, for a body around `middle`."""
        if self.axis == "camera":
            normal = -forward
            return normal, float(normal @ middle) + (self.at or 0.0)
        normal = np.eye(3)["xyz".index(self.axis)]
        at = float(normal @ middle) if self.at is None else self.at
        return (normal, at) if normal @ forward < 0.0 else (-normal, -at)


class FieldPainter:
    """Pictures of a body's level set, carried along by direct forward advection."""

    def __init__(
        self,
        setting: Setting,
        body: Body,
        *,
        cut: Cut | None = None,
        spacing: float | None = None,
    ):
        self._setting, self._body, self._cut = setting, body, cut
        self._moving = MovingField(body, layers=BAND, spacing=spacing)
        solids = setting.solids or [(np.full((3, 3), -1e6), np.array([[0, 1, 2]]))]
        offsets = np.cumsum([0, *(len(p) for p, _ in solids)])
        points = np.concatenate([p for p, _ in solids]).astype(np.float32)
        facets = np.concatenate([f + o for (_, f), o in zip(solids, offsets, strict=False)])
        self._solids = wp.Mesh(
            points=to_device(points, wp.vec3f),
            indices=to_device(facets.astype(np.int32).reshape(-1), wp.int32),
        )

    def paint(self, u: np.ndarray, values: np.ndarray, scale: Scale, samples: int) -> np.ndarray:
        """(height, width, 3) uint8 for a displacement u (nodes, 3) and nodal values (nodes,)."""
        moving, setting = self._moving, self._setting
        moved = moving.extended(np.column_stack([u, values]))
        grid = following_grid(moving.samples, moved[:, :3])
        places = grid.cells(moving.samples.nodes + moved[:, :3])
        found = forward_advect(places, moving.samples.phi, grid.shape, also=moved[:, 3])
        phi = fill_holes(found.values, found.holes, spacing=grid.spacing)
        assert found.also is not None
        shade = scale.linear_colours(found.also)
        transfer = distance_colours(grid.spacing, -float(phi.min()))
        if self._cut is not None and self._cut.transfer is not None:
            transfer = self._cut.transfer
        plane = self.plane(self._body.nodes + u)
        field = self._rays(phi, grid, shade, plane)
        volume = self._volume(phi, grid, transfer, field.slope.numpy(), plane)
        arrays = [field, transfer.table(), self._solids.id, volume, setting.view, setting.stage]

        width, height = int(setting.view.width), int(setting.view.height)
        behind = zeros(width * height if self._cut is not None else 0, wp.vec3f)
        behind.fill_(wp.vec3f(UNSEEN, UNSEEN, UNSEEN))

        def cast(pixels: wp.array, count: int, out: wp.array) -> None:
            more = count > 1 and self._cut is not None
            uneven = find_uneven(behind, pixels, width, height) if more else zeros(0, wp.bool)
            launch(
                draw_field, len(pixels), [pixels, count, *arrays, behind, uneven, out], grain=2000
            )

        kept = None if setting.solids else self._kept(field, volume, samples)
        return antialiased(cast, width, height, samples, kept)

    def _kept(self, field: Any, volume: Any, samples: int) -> Unchanged:
        empty = self._setting.empty
        covered, shading = (
            share(np.diff(s.numpy(), axis=1)[:, 0] > 0.0, wp.bool)
            for s in (field.eye_stretch, field.lamp_stretch)
        )
        touched = empty.touched(field.eye, covered, field.lamp, shading, float(volume.spacing))
        if self._cut is not None:
            size = wp.vec3f(*(volume.spacing * (n - 1) for n in volume.shape))
            inputs = [
                self._setting.view, field.eye, volume.cut_normal, volume.cut_offset,
                volume.corner, size, touched,
            ]  # fmt: skip
            launch(find_sliced, len(touched), inputs, grain=1000)
        return empty.unchanged(touched, field.eye, samples)

    def plane(self, nodes: np.ndarray) -> Plane | None:
        """Where the slice lies when the nodes are at `nodes` (nodes, 3); None without one."""
        if self._cut is None:
            return None
        surface = self._body.surface.points.matrix @ nodes
        middle = 0.5 * (surface.min(axis=0) + surface.max(axis=0))
        return self._cut.plane(self._setting.camera.axes()[2], middle)

    def sliced(self, nodes: np.ndarray, values: np.ndarray) -> np.ndarray | None:
        """Nodal values (nodes,) where the slice shows them; None if it does not show values."""
        plane = self.plane(nodes)
        if plane is None or self._cut is None or not self._cut.values:
            return None
        return sliced_values(self._body, values, nodes @ plane[0] - plane[1])

    def _rays(self, phi: np.ndarray, grid: Any, shade: np.ndarray, plane: Plane | None) -> Any:
        field: Any = Field()
        field.phi = to_device(phi.astype(np.float32).reshape(-1), wp.float32)
        field.slope = zeros(phi.size, wp.vec3f)
        field.colour = share(shade.reshape(-1, 3), wp.vec3f)
        launch(nodal_slopes, phi.size, [field.phi, wp.vec3i(*phi.shape), field.slope])
        half = 0.5 * grid.spacing
        radius = 1.001 * np.sqrt(3.0) * half
        cells, crossed = cells_inside(phi < 0.0)
        centres = grid.corner + half + grid.spacing * cells
        if plane is None:
            centres = centres[crossed]
        else:  # rays meet nothing before the plane, and may be inside when they come to it
            beyond = centres @ plane[0] - plane[1]
            met = (crossed & (beyond <= radius)) | (np.abs(beyond) <= radius)
            centres = centres[met] if met.any() else centres[:1]
        places = to_device(centres.astype(np.float32), wp.vec3f)
        field.eye = camera_projection(self._setting.view, BLOCK)
        field.lamp = lamp_projection(self._setting.stage, centres, radius)
        field.eye_stretch = ball_stretches(field.eye, places, radius)
        field.lamp_stretch = ball_stretches(field.lamp, places, radius)
        return field

    def _volume(
        self,
        phi: np.ndarray,
        grid: Any,
        transfer: TransferFunction,
        slope: np.ndarray,
        plane: Plane | None,
    ) -> Any:
        volume: Any = Volume()
        volume.corner = wp.vec3f(*map(float, grid.corner))
        volume.spacing, volume.shape = grid.spacing, wp.vec3i(*map(int, grid.shape))
        near = np.abs(phi.reshape(-1)) < grid.spacing
        steep = np.linalg.norm(slope[near], axis=1) / (2.0 * grid.spacing)
        # where the body is compressed the field is steeper than a distance, and steps must shrink
        volume.pace = float(np.clip(0.95 / np.percentile(steep, 98.0), 0.3, 1.0))
        volume.solids = int(bool(self._setting.solids))
        volume.cut, volume.cap, volume.depth = 0, 0, transfer.depth
        if self._cut is not None and plane is not None:
            normal, at = plane
            volume.cut, volume.cap = 1, int(self._cut.values)
            volume.cut_normal, volume.cut_offset = wp.vec3f(*map(float, normal)), float(at)
        return volume


def sliced_values(body: Body, values: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Nodal values (nodes,) where the height (nodes,) above a plane changes its sign, (n,).

    Taken between every two corners of a cell that lie on either side; cells that are hardly filled
    show next to nothing and are left out.
    """
    cells = body.cells[body.fill > LEAST_FILL] if (body.fill > LEAST_FILL).any() else body.cells
    above = height[cells] > 0.0
    crossed = cells[above.any(axis=1) & ~above.all(axis=1)]
    corners = crossed.shape[1]
    found = [np.empty(0)]
    for a in range(corners):
        for b in range(a + 1, corners):
            i, j = crossed[:, a], crossed[:, b]
            apart = (height[i] > 0.0) != (height[j] > 0.0)
            i, j = i[apart], j[apart]
            t = height[i] / (height[i] - height[j])
            found.append((1.0 - t) * values[i] + t * values[j])
    return np.concatenate(found)


def cells_inside(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells (n, 3) with a corner inside, and which of them (n,) have one outside too.

    A trilinear field changes its sign in the latter only.
    """
    some, every = inside, inside
    for axis in range(inside.ndim):
        low = tuple(slice(None, -1) if d == axis else slice(None) for d in range(inside.ndim))
        high = tuple(slice(1, None) if d == axis else slice(None) for d in range(inside.ndim))
        some, every = some[low] | some[high], every[low] & every[high]
    return np.argwhere(some), ~every[some]
