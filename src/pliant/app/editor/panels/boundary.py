"""Boundary: regions in which the surface is held, each with a handle, and the floor."""

from typing import Any

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.region_handle import RegionHandle, editable, make_region, region_size
from pliant.app.editor.session import held_points
from pliant.core.vectors import in_space

NONE = "none"
HELD_COLOR = (200, 40, 60)


class BoundaryPanel:
    """Adds, moves, resizes and removes held regions."""

    def __init__(self, context: Context):
        self.context = context
        gui = context.gui
        self.add = gui.add_button_group("Hold a region", ("Add box", "Add sphere"))
        self.which = gui.add_dropdown(
            "Region", (NONE,), initial_value=NONE, hint="The one that is edited here."
        )
        self.arrows = gui.add_checkbox(
            "Show arrows", False, hint="Arrows in the view that move the region when dragged."
        )
        self.center = gui.add_vector3("Centre [m]", (0.0, 0.0, 0.0), step=0.01)
        self.size = gui.add_vector3(
            "Size [m]", (1.0, 1.0, 1.0), step=0.01, hint="Edges of the box; a sphere's diameter."
        )
        self.axes = gui.add_dropdown(
            "Holds along", ("xyz", "x", "y", "z", "xy", "xz", "yz"), initial_value="xyz",
            hint="y alone is a roller: the region may slide sideways.",
        )  # fmt: skip
        self.remove = gui.add_button("Remove this region", icon="trash")
        self.info = gui.add_markdown("")
        gui.add_divider()
        self.floor = gui.add_checkbox(
            "Floor", False, hint="A level plane that the body cannot pass."
        )
        self.height = gui.add_number("Floor height [m]", 0.0, step=0.01)
        self.friction = gui.add_slider("Friction", 0.0, 1.0, 0.05, 0.0, hint="Coulomb's.")
        self.handle = RegionHandle(context.server.scene, "/held_region", HELD_COLOR)
        self.selected = 0
        context.on_choice(self.add, lambda label: self._add(label.split()[1]))
        context.on_change(self.which, self._select)
        context.on_change(self.arrows, lambda _: self._show_handle())
        for handle in (self.center, self.size):
            context.on_change(handle, lambda _: self._resized())
        context.on_change(self.axes, lambda value: self._edit(axes=value))
        context.on_click(self.remove, lambda _: self._remove())
        for handle in (self.floor, self.height, self.friction):
            context.on_change(handle, lambda _: self._set_floor())

    @property
    def _fixed(self) -> list[dict[str, Any]]:
        return list(self.context.session.description.get("fixed", []))

    def refresh(self) -> None:
        """Show the selected region and the floor."""
        session, fixed = self.context.session, self._fixed
        self.selected = min(self.selected, max(len(fixed) - 1, 0))
        names = tuple(f"{i + 1}: {f['region']['type']}" for i, f in enumerate(fixed)) or (NONE,)
        if self.which.options != names:
            self.which.options = names
        self.which.value = names[self.selected]
        can = bool(fixed) and editable(fixed[self.selected]["region"])
        for handle in (self.center, self.size):
            handle.disabled = not can
        self.axes.disabled = self.remove.disabled = not fixed
        if fixed:
            self.axes.value = fixed[self.selected].get("axes", "xyz")
        if can:
            region = fixed[self.selected]["region"]
            self.center.value = tuple(region.get("center") or (0.0, 0.0, 0.0))
            self.size.value = tuple(region_size(region).tolist())
        held = int(held_points(session.scene).sum())
        total = len(session.body.surface.points)
        self.info.content = (
            f"**{held:,}** of {total:,} surface points are held."
            if held or not fixed
            else "**The region touches no part of the surface**: drag it over the body."
        )
        self._refresh_floor()
        self._show_handle()

    def _show_handle(self) -> None:
        fixed = self._fixed
        if not self.arrows.value or not fixed or not editable(fixed[self.selected]["region"]):
            self.handle.hide()
            return
        nodes = self.context.session.body.nodes
        scale = 0.3 * float(np.linalg.norm(nodes.max(axis=0) - nodes.min(axis=0)))
        self.handle.show(fixed[self.selected]["region"], self._moved, scale)

    def _select(self, name: str) -> None:
        self.selected = 0 if name == NONE else int(name.split(":")[0]) - 1
        self.refresh()

    def _add(self, kind: str) -> None:
        nodes = in_space(self.context.session.body.nodes)
        lo, hi = nodes.min(axis=0), nodes.max(axis=0)
        size = hi - lo
        place = np.array([lo[0], 0.5 * (lo[1] + hi[1]), 0.5 * (lo[2] + hi[2])])
        edges = [0.25 * size[0], 1.2 * size[1], 1.2 * size[2]]
        if kind == "sphere":
            edges = [0.7 * float(np.sort(size)[1])] * 3
        self.selected = len(self._fixed)
        self.arrows.value = True
        region = make_region(kind, place, edges)
        self.context.session.change(fixed=[*self._fixed, {"region": region, "axes": "xyz"}])

    def _edit(self, **values: Any) -> None:
        fixed = self._fixed
        if fixed:
            fixed[self.selected] = {**fixed[self.selected], **values}
            self.context.session.change(fixed=fixed)

    def _moved(self, center: np.ndarray) -> None:
        def move() -> None:
            region = self._fixed[self.selected]["region"]
            self._edit(region=make_region(region["type"], center, region_size(region)))

        self.context.desk.post(move, key="held region")

    def _resized(self) -> None:
        region = self._fixed[self.selected]["region"]
        self._edit(region=make_region(region["type"], self.center.value, self.size.value))

    def _remove(self) -> None:
        fixed = self._fixed
        del fixed[self.selected]
        self.context.session.change(fixed=fixed or None)

    def _refresh_floor(self) -> None:
        description = self.context.session.description
        planes = [o for o in description.get("obstacles", []) if o["type"] == "plane"]
        level = [p for p in planes if _is_level(p["normal"])]
        self.floor.value = bool(level)
        self.floor.disabled = bool(planes) and not level  # a sloped one stays as it is
        self.height.disabled = self.friction.disabled = not level
        if level:
            self.height.value = float(level[0]["offset"])
            self.friction.value = float(description.get("contact", {}).get("friction", 0.0))
        else:
            nodes = self.context.session.body.nodes
            lo, hi = nodes.min(axis=0), nodes.max(axis=0)
            self.height.value = float(f"{lo[1] - 0.6 * (hi - lo).max():.3g}")

    def _set_floor(self) -> None:
        session = self.context.session
        others = [
            o
            for o in session.description.get("obstacles", [])
            if not (o["type"] == "plane" and _is_level(o["normal"]))
        ]
        contact = session.description.get("contact", {})
        if not self.floor.value:
            session.change(obstacles=others or None, contact=contact if others else None)
            return
        normal = [0.0, 1.0, 0.0][: session.body.dim]
        plane = {"type": "plane", "normal": normal, "offset": float(self.height.value)}
        session.change(
            obstacles=[*others, plane], contact={**contact, "friction": float(self.friction.value)}
        )


def _is_level(normal: Any) -> bool:
    n = np.asarray(normal, float)
    return bool(n[1] > 0.9999 * np.linalg.norm(n))
