"""A box or sphere that is dragged over the body to choose a part of its surface."""

from collections.abc import Callable
from typing import Any

import numpy as np

Region = dict[str, Any]

EDITABLE = ("box", "sphere")


def editable(region: Region) -> bool:
    """True for boxes and spheres in 3D, which have a handle."""
    return region.get("type") in EDITABLE and len(region.get("center") or (0, 0, 0)) == 3


def region_size(region: Region) -> np.ndarray:
    """Edges of its box, (3,) [m]."""
    if region["type"] == "sphere":
        return np.full(3, 2.0 * region["radius"])
    return np.asarray(region["size"], float)


def make_region(kind: str, center: Any, size: Any) -> Region:
    """The description of a box with edges `size`, or of a sphere as wide as the first of them."""
    center = [float(c) for c in center]
    size = [max(float(s), 1e-6) for s in size]
    if kind == "sphere":
        return {"type": "sphere", "radius": 0.5 * size[0], "center": center}
    return {"type": "box", "size": size, "center": center}


class RegionHandle:
    """Shows one region with arrows to drag; moved(center) is called at the end of each drag."""

    def __init__(self, scene: Any, name: str, color: tuple[int, int, int]):
        self._scene, self._name, self._color = scene, name, color
        self._gizmo: Any = None
        self._solid: Any = None

    def show(self, region: Region, moved: Callable[[np.ndarray], None], scale: float) -> None:
        """Show a region; scale: size of the arrows [m]."""
        self.hide()
        center = np.asarray(region.get("center") or (0.0, 0.0, 0.0), float)
        self._gizmo = self._scene.add_transform_controls(
            self._name, scale=scale, disable_rotations=True, depth_test=False, position=center,
            opacity=0.85,
        )  # fmt: skip
        look = {"color": self._color, "opacity": 0.28, "cast_shadow": False, "side": "double"}
        if region["type"] == "sphere":
            self._solid = self._scene.add_icosphere(
                f"{self._name}/solid", radius=float(region["radius"]), **look
            )
        else:
            dimensions = tuple(float(s) for s in region["size"])
            self._solid = self._scene.add_box(f"{self._name}/solid", dimensions=dimensions, **look)
        gizmo = self._gizmo

        async def changed(event: Any) -> None:
            if event.phase == "end":
                moved(np.array(gizmo.position, float))

        gizmo.on_update(changed)

    def hide(self) -> None:
        """Take it away."""
        if self._gizmo is not None:
            self._gizmo.remove()  # and its solid with it
            self._gizmo = self._solid = None
