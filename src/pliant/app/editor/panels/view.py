"""View: surface, cells with the cut ones marked, a slice, colours by stress or displacement."""

from pliant.app.editor.coloured_mesh import css_gradient
from pliant.app.editor.context import Context
from pliant.app.editor.theme import DARK, LIGHT
from pliant.core.lengths import length_unit

COLOURS = {
    "plain": "plain", "von Mises stress": "stress", "displacement": "displacement",
}  # fmt: skip


class ViewPanel:
    """Changes only what is shown."""

    def __init__(self, context: Context):
        self.context = context
        gui = context.gui
        self.surface = gui.add_checkbox("Surface", True)
        self.cells = gui.add_checkbox(
            "Cells", False, hint="Edges of the cells; those cut by the surface are orange."
        )
        self.cut_only = gui.add_checkbox("Cut cells only", False)
        self.held = gui.add_checkbox("Held points", True, hint="Red dots on the held surface.")
        self.shadows = gui.add_checkbox(
            "Shadows", True, hint="Switch them off where the browser has no graphics card."
        )
        self.dark = gui.add_checkbox(
            "Dark theme", context.viewport.theme.dark, hint="In every page of this editor."
        )
        self.colour = gui.add_dropdown(
            "Colour", tuple(COLOURS), initial_value="plain",
            hint="Von Mises stress: how strongly the material is sheared, as one number.",
        )  # fmt: skip
        self.legend = gui.add_html("")
        self.fixed_scale = gui.add_checkbox(
            "Keep the colour scale", False, hint="Instead of the largest value of each frame."
        )
        self.slice = gui.add_dropdown(
            "Slice across", ("off", "x", "y", "z"), initial_value="off",
            hint="Opens the body at a plane that moves along with it.",
        )  # fmt: skip
        self.slice_at = gui.add_slider("Slice at", 0.02, 0.98, 0.01, 0.5)
        self.camera = gui.add_button("Frame the body", icon="focus-2")
        self.follow = gui.add_checkbox(
            "Follow the body", False, hint="The camera moves along with the body's middle."
        )
        self._legend_top = -1.0
        for handle in (self.surface, self.cells, self.cut_only, self.held, self.colour,
                       self.fixed_scale, self.slice, self.slice_at, self.follow):  # fmt: skip
            context.on_change(handle, lambda _: self.apply())
        context.on_change(self.shadows, context.viewport.set_shadows)
        context.on_change(
            self.dark, lambda dark: context.viewport.set_theme(DARK if dark else LIGHT)
        )
        context.on_click(self.camera, lambda _: context.viewport.frame_camera())

    def refresh(self) -> None:
        """Apply the choices to a new body."""
        self.apply(redraw=False)

    def apply(self, *, redraw: bool = True) -> None:
        """Hand the choices to the view."""
        viewport = self.context.viewport
        look = viewport.look
        look.surface, look.cells = self.surface.value, self.cells.value
        look.cut_only, look.held = self.cut_only.value, self.held.value
        look.colour = COLOURS[self.colour.value]
        look.slice_axis, look.slice_at = self.slice.value, self.slice_at.value
        look.follow = self.follow.value
        if self.fixed_scale.value and look.scale_automatic:
            look.scale_top = viewport.top
        look.scale_automatic = not self.fixed_scale.value
        self.slice_at.visible = look.slice_axis != "off"
        self.fixed_scale.visible = look.colour != "plain"
        self.cut_only.visible = look.cells
        if redraw:
            viewport.redraw()
        self.show_legend()

    def show_legend(self) -> None:
        """The colour scale with its numbers."""
        look, top = self.context.viewport.look, self.context.viewport.top
        if look.colour == "plain":
            if self.legend.content:
                self.legend.content = ""
                self._legend_top = -1.0
            return
        if abs(top - self._legend_top) <= 0.01 * abs(top):
            return
        self._legend_top = top
        size, unit = (1.0, "Pa") if look.colour == "stress" else length_unit(top)
        self.legend.content = (
            f'<div style="margin:0 0.6em 0.4em 0.6em;font-size:0.8em">'
            f'<div style="height:0.9em;border-radius:3px;background:{css_gradient()}"></div>'
            f'<div style="display:flex;justify-content:space-between"><span>0</span>'
            f"<span>{top / size / 2:.3g}</span><span>{top / size:.3g} {unit}</span></div></div>"
        )
