"""Shape: what the body looks like: a primitive with its sizes, or an uploaded file."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.cell_count import spacing_for
from pliant.app.editor.context import Context
from pliant.app.editor.folder import UPLOADS, check_upload, inside
from pliant.app.editor.placing import placed, sensible_scale
from pliant.core.errors import BadInput
from pliant.core.files import whole_file
from pliant.core.lengths import length_unit, rounded
from pliant.geometry.load import load_shape
from pliant.geometry.shapes import shape_from_dict

CELLS = 3000
"""Of a new body: it plays smoothly, and finer ones are a click away."""

PRIMITIVES: dict[str, dict[str, Any]] = {
    "box": {"size": [2.0, 0.5, 0.5]},
    "sphere": {"radius": 0.6},
    "torus": {"major": 1.0, "minor": 0.35},
    "cylinder": {"radius": 0.4, "height": 1.6},
    "ellipsoid": {"radii": [0.9, 0.5, 0.6]},
    "capsule": {"start": [-0.8, 0.0, 0.0], "end": [0.8, 0.0, 0.0], "radius": 0.35},
}
AS_LOADED = "as loaded"


class ShapePanel:
    """Chooses the shape; a new one hangs from its top."""

    def __init__(self, context: Context):
        self.context = context
        gui = context.gui
        self.kind = gui.add_dropdown(
            "Shape", (AS_LOADED, *PRIMITIVES), initial_value=AS_LOADED,
            hint="A primitive to start from; the scene's own shape is 'as loaded'.",
        )  # fmt: skip
        self._folder = gui.add_folder("Sizes [m]")
        self._inputs: dict[str, Any] = {}
        self._shown: Any = None
        self.apply = gui.add_button(
            "Use this shape", icon="check", hint="Builds a grid of about 3,000 cells of it."
        )
        gui.add_divider()
        endings = " ".join(UPLOADS)
        self.upload = gui.add_upload_button(
            "Upload a shape", icon="upload", mime_type=",".join(UPLOADS),
            hint=f"{endings}, at most 64 MB: triangle meshes (holes are tolerated) or sampled "
            "signed distances. It is stored in the served folder.",
        )  # fmt: skip
        self._placing = gui.add_folder("Scale and turn")
        with self._placing:
            self.scale = gui.add_number(
                "Scale", 1.0, min=1e-9, max=1e9, step=0.01,
                hint="Of the file's lengths: 0.001 for millimetres. An upload that is smaller than "
                "10 cm or larger than 5 m is scaled by a power of ten.",
            )  # fmt: skip
            self.turn = gui.add_vector3(
                "Turn [°]", (0.0, 0.0, 0.0), step=15.0, hint="About x, then y, then z."
            )
            self.place = gui.add_button("Apply", icon="rotate-clockwise")
        self._base: dict[str, Any] | None = None
        self.info = gui.add_markdown("")
        context.on_click(self.place, lambda _: self._place())
        context.on_change(self.kind, lambda _: self._show_inputs())
        context.on_click(self.apply, lambda _: self._use())
        context.on_upload(self.upload, self._uploaded)

    def refresh(self) -> None:
        """Say what the shape is."""
        body = self.context.session.body
        rest = body.surface.positions(body.nodes)
        lo, hi = rest.min(axis=0), rest.max(axis=0)
        unit, name = length_unit(float((hi - lo).max()))
        size = " x ".join(rounded(float(s) / unit, 3) for s in hi - lo)
        shape = self.context.session.description.get("shape") or {}
        kind = Path(str(shape.get("file", ""))).name or shape.get("type", "mesh")
        self.info.content = (
            f"**{kind}**, {size} {name}, volume {body.volume:.4g} m{'³' if body.dim == 3 else '²'}"
        )
        self.apply.disabled = self.kind.value == AS_LOADED
        if not _made_from(shape, self._base):
            self._base = None  # undone, or another scene

    def _show_inputs(self) -> None:
        for handle in self._inputs.values():
            handle.remove()
        self._inputs = {}
        kind = self.kind.value
        self.apply.disabled = kind == AS_LOADED
        with self._folder:
            for name, value in PRIMITIVES.get(kind, {}).items():
                if isinstance(value, list):
                    self._inputs[name] = self.context.gui.add_vector3(name, tuple(value), step=0.05)
                else:
                    self._inputs[name] = self.context.gui.add_number(
                        name, float(value), min=0.001, step=0.05
                    )

    def _use(self) -> None:
        kind = self.kind.value
        if kind == AS_LOADED:
            return
        values = {
            name: list(h.value) if isinstance(h.value, tuple) else h.value
            for name, h in self._inputs.items()
        }
        self._base = None
        self.use({"type": kind, **values}, title=kind)

    def _place(self) -> None:
        """The shape as it is, or as it was uploaded, at another scale and turned."""
        session = self.context.session
        base = self._base or session.description.get("shape")
        if base is None:
            raise BadInput("This body is a mesh of cells; only shapes can be scaled and turned.")
        self.use(placed(base, scale=float(self.scale.value), turn=self.turn.value))
        self._base = base

    def use(self, description: dict[str, Any], *, title: str | None = None) -> None:
        """Make a body of about CELLS cells of a shape, held at its top, under the earth's gravity.

        title: what the scene is called from now on.
        """
        session = self.context.session
        shape = shape_from_dict(description)
        if shape.dim != 3:
            raise BadInput("The editor makes bodies of 3D shapes.")
        lo, hi = (np.asarray(b, float) for b in shape.bounds)
        size = hi - lo
        top = [float(c) for c in 0.5 * (lo + hi)]
        top[1] = float(hi[1])
        region = {
            "type": "box", "center": top,
            "size": [1.1 * float(size[0]), 0.3 * float(size[1]), 1.1 * float(size[2])],
        }  # fmt: skip
        changes = {"shape": description, "fixed": [{"region": region}], "loads": None}
        named = {} if title is None else {"title": title, "description": ""}
        session.change(
            **changes, **named, obstacles=None, contact=None, attached=None,
            gravity=[0.0, -9.81, 0.0], initial_velocity=[0.0] * 3, initial_spin=[0.0] * 3,
            start="rest", body={"kind": "grid", "spacing": spacing_for(shape, CELLS)},
        )  # fmt: skip
        self.context.say(f"{len(session.body.cells):,} cells, held at the top.")

    def _uploaded(self, file: Any) -> None:
        name = check_upload(file.name, len(file.content))
        path = inside(self.context.folder, name)
        if path.exists():
            stem, ending = path.stem, path.suffix
            path = inside(self.context.folder, f"{stem}-{time.strftime('%H%M%S')}{ending}")
        with whole_file(path) as temporary:
            temporary.write_bytes(file.content)
        self.context.say(f"Reading {name}, {len(file.content) / 1e6:.1f} MB ...")
        try:
            shape = load_shape(path)
            scale = sensible_scale(shape)
            lo, hi = (np.asarray(b, float) for b in shape.bounds)
            size = " x ".join(f"{s:.3g}" for s in scale * (hi - lo))
            self.context.say(f"{name}: {size} m. Cutting it into about {CELLS:,} cells ...")
            base = shape.to_dict()
            self.use(placed(base, scale=scale), title=Path(name).stem)
        except BadInput:
            path.unlink(missing_ok=True)  # what cannot be read is not kept
            raise
        self.context.session.name = Path(name).stem
        self._base = base
        self.scale.value, self.turn.value = scale, (0.0, 0.0, 0.0)
        self.kind.value = AS_LOADED
        told = "" if scale == 1.0 else f", scaled by {scale:g}"
        self.context.say(
            f"{name}{told}: {size} m, {len(self.context.session.body.cells):,} cells, held at the "
            "top."
        )


def _made_from(shape: Any, base: dict[str, Any] | None) -> bool:
    """Whether a shape's table is another one, scaled, turned and moved."""
    while isinstance(shape, dict):
        if shape == base:
            return True
        shape = shape.get("shape")
    return False
