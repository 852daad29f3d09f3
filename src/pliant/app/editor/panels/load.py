"""Load: gravity, pressure and traction on picked regions, and the mouse as a spring."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.app.editor.context import Context
from pliant.app.editor.region_handle import RegionHandle, editable, make_region, region_size
from pliant.core.vectors import in_space
from pliant.dynamics.loads import Pressure, Traction

NONE = "none"
LOAD_COLOR = (40, 110, 200)


class LoadPanel:
    """Adds, moves and removes loads; picking the body moves the selected one there."""

    def __init__(self, context: Context):
        self.context = context
        gui = context.gui
        self.gravity = gui.add_vector3(
            "Gravity [m/s²]", (0.0, -9.81, 0.0), step=0.01, hint="An acceleration; y points up."
        )
        self.presets = gui.add_button_group("", ("Earth", "Moon", "None"))
        self.strength = gui.add_slider(
            "Mouse strength", 0.05, 1.0, 0.05, 0.6,
            hint="While it plays, drag the body with the left button: a spring pulls the grabbed "
            "part. Drag beside the body to turn the view.",
        )  # fmt: skip
        gui.add_divider()
        self.add = gui.add_button_group("Add a load", ("Pressure", "Traction"))
        self.which = gui.add_dropdown(
            "Load", (NONE,), initial_value=NONE, hint="The one that is edited here."
        )
        self.pressure = gui.add_number(
            "Pressure [Pa]", 10.0, step=0.1, hint="Positive pushes inward."
        )
        self.force = gui.add_vector3(
            "Traction [N/m²]", (0.0, -10.0, 0.0), step=0.1, hint="Force per area; it does not turn."
        )
        self.arrows = gui.add_checkbox(
            "Show arrows", False, hint="Arrows in the view that move the region when dragged."
        )
        self.center = gui.add_vector3("Centre [m]", (0.0, 0.0, 0.0), step=0.01)
        self.size = gui.add_vector3("Size [m]", (1.0, 1.0, 1.0), step=0.01)
        self.pick = gui.add_button(
            "Pick on the body", icon="pointer", hint="Then click where this load shall act."
        )
        self.remove = gui.add_button("Remove this load", icon="trash")
        self.info = gui.add_markdown("")
        self.handle = RegionHandle(context.server.scene, "/load_region", LOAD_COLOR)
        self.selected = 0
        self.picking = False
        self.on_picking: Callable[[], None] = lambda: None
        context.on_change(self.gravity, lambda value: self._set_gravity(value))
        context.on_choice(self.presets, self._gravity_of)
        context.on_choice(self.add, lambda kind: self._add(kind.lower()))
        context.on_change(self.which, self._select)
        context.on_change(self.arrows, lambda _: self._show_handle())
        context.on_change(self.pressure, lambda value: self._edit(pressure=float(value)))
        context.on_change(self.force, lambda value: self._edit(force=self._vector(value)))
        for handle in (self.center, self.size):
            context.on_change(handle, lambda _: self._resized())
        context.on_click(self.pick, lambda _: self._start_picking())
        context.on_click(self.remove, lambda _: self._remove())

    @property
    def _loads(self) -> list[dict[str, Any]]:
        return list(self.context.session.description.get("loads", []))

    def refresh(self) -> None:
        """Show gravity and the selected load."""
        session, loads = self.context.session, self._loads
        self.gravity.value = tuple(in_space(np.array([session.scene.gravity]))[0].tolist())
        self.selected = min(self.selected, max(len(loads) - 1, 0))
        names = tuple(f"{i + 1}: {load['type']}" for i, load in enumerate(loads)) or (NONE,)
        if self.which.options != names:
            self.which.options = names
        self.which.value = names[self.selected]
        load: dict[str, Any] = loads[self.selected] if loads else {"type": ""}
        kind = load["type"]
        self.pressure.visible = kind == "pressure"
        self.force.visible = kind in ("traction", "point", "body")
        if kind == "pressure":
            self.pressure.value = float(load["pressure"])
        elif kind:
            self.force.value = tuple(in_space(np.array([load["force"]]))[0].tolist())
        region = load.get("region")
        can = region is not None and editable(region)
        for handle in (self.center, self.size, self.pick):
            handle.visible = can
        if region is not None and can:
            self.center.value = tuple(region.get("center") or (0.0, 0.0, 0.0))
            self.size.value = tuple(region_size(region).tolist())
        self.remove.visible = bool(loads)
        rest = session.body.surface.positions(session.body.nodes)
        acting = session.scene.loads[self.selected] if loads else None
        if isinstance(acting, Traction | Pressure):
            touched = int((acting.region.distance(rest) <= 0.0).sum())
            self.info.content = (
                f"Acts on {touched:,} surface points."
                if touched
                else "**The region touches no part of the surface**: drag it over the body."
            )
        else:
            self.info.content = "" if kind else "No loads but gravity."
        self._show_handle()

    def _show_handle(self) -> None:
        loads = self._loads
        region = loads[self.selected].get("region") if loads else None
        if not self.arrows.value or region is None or not editable(region):
            self.handle.hide()
            return
        nodes = self.context.session.body.nodes
        scale = 0.3 * float(np.linalg.norm(nodes.max(axis=0) - nodes.min(axis=0)))
        self.handle.show(region, self._moved, scale)

    def picked(self, point: int) -> bool:
        """Move the selected load to a surface point, if picking; True if it was."""
        if not self.picking:
            return False
        self.picking = False
        self.on_picking()
        body = self.context.session.body
        self._place(body.surface.positions(body.nodes)[point])
        return True

    def _vector(self, value: Any) -> list[float]:
        return [float(c) for c in value][: self.context.session.body.dim]

    def _set_gravity(self, value: Any) -> None:
        self.context.session.change(gravity=self._vector(value))

    def _gravity_of(self, name: str) -> None:
        self._set_gravity((0.0, {"Earth": -9.81, "Moon": -1.62, "None": 0.0}[name], 0.0))

    def _select(self, name: str) -> None:
        self.selected = 0 if name == NONE else int(name.split(":")[0]) - 1
        self.refresh()

    def _add(self, kind: str) -> None:
        session = self.context.session
        if session.body.dim != 3:
            self.context.complain("Loads are added to 3D bodies here; a scene file has them in 2D.")
            return
        rest = session.body.surface.positions(session.body.nodes)
        tip = rest[session.tip()]
        size = rest.max(axis=0) - rest.min(axis=0)
        region = make_region("sphere", tip, [0.5 * float(np.sort(size)[1])] * 3)
        modulus = float(np.mean(session.scene.cell_material.youngs_modulus))
        amount = float(f"{0.02 * modulus:.2g}")
        load: dict[str, Any] = {"type": kind, "region": region}
        load |= {"pressure": amount} if kind == "pressure" else {"force": [0.0, -amount, 0.0]}
        self.selected = len(self._loads)
        self.arrows.value = True
        session.change(loads=[*self._loads, load])

    def _edit(self, **values: Any) -> None:
        loads = self._loads
        if loads:
            loads[self.selected] = {**loads[self.selected], **values}
            self.context.session.change(loads=loads)

    def _place(self, center: np.ndarray) -> None:
        region = self._loads[self.selected]["region"]
        self._edit(region=make_region(region["type"], center, region_size(region)))

    def _moved(self, center: np.ndarray) -> None:
        self.context.desk.post(lambda: self._place(center), key="load region")

    def _resized(self) -> None:
        region = self._loads[self.selected]["region"]
        self._edit(region=make_region(region["type"], self.center.value, self.size.value))

    def _start_picking(self) -> None:
        self.picking = True
        self.on_picking()
        self.context.say("Click the body where the load shall act.")

    def _remove(self) -> None:
        loads = self._loads
        del loads[self.selected]
        self.context.session.change(loads=loads or None)
