"""Mesh: grid cells or tetrahedra, how fine, and how many that will be."""

from pliant.app.describing.cell_count import grid_cells, tet_cells
from pliant.app.editor.context import Context
from pliant.core.errors import BadInput

KINDS = {"grid": "Grid (partially filled cells)", "tets": "Tetrahedra"}
SLOW = 20_000
"""Cells beyond which a step takes more than about a quarter of a second on two cores."""


class MeshPanel:
    """Counts cells before building them."""

    def __init__(self, context: Context):
        self.context = context
        gui = context.gui
        self.kind = gui.add_dropdown(
            "Cells", tuple(KINDS.values()), initial_value=KINDS["grid"],
            hint="Grid cells need no meshing; tetrahedra follow the surface (needs pliant[mesh]).",
        )  # fmt: skip
        self.size = gui.add_number(
            "Spacing [m]", 0.1, min=1e-4, step=1e-4,
            hint="Edge of a grid cell, or of a tetrahedron.",
        )  # fmt: skip
        self.count = gui.add_markdown("")
        self.build = gui.add_button(
            "Build", icon="grid-dots", hint="Makes the body; a run starts again from rest."
        )
        for handle in (self.kind, self.size):
            context.on_change(handle, lambda _: self._count())
        context.on_click(self.build, lambda _: self._build())

    def refresh(self) -> None:
        """Show the body's own numbers."""
        session = self.context.session
        table = session.description["body"]
        self.kind.value = KINDS[table["kind"]]
        self.size.value = float(table.get("spacing") or table.get("edge_length")
                                or session.body.spacing)  # fmt: skip
        body = session.body
        cut = int((body.fill < 1.0 - 1e-9).sum())
        cuts = f", {cut:,} of them cut by the surface" if body.is_grid else ""
        self.count.content = f"**{len(body.cells):,} cells**{cuts}; {len(body.nodes):,} nodes."
        self.build.disabled = session.shape is None

    def _chosen(self) -> str:
        return next(k for k, label in KINDS.items() if label == self.kind.value)

    def _count(self) -> None:
        shape = self.context.session.shape
        if shape is None:
            self.count.content = "This body came from a mesh file: it keeps its cells."
            return
        try:
            if self._chosen() == "grid":
                cells, exact = grid_cells(shape, self.size.value)
            else:
                cells, exact = tet_cells(shape, self.size.value), False
        except BadInput as error:
            self.count.content = str(error)
            return
        about = "" if exact else "about "
        slow = " That is a lot to play: expect seconds a step." if cells > SLOW else ""
        self.count.content = f"Will have {about}**{cells:,} cells**.{slow}"

    def _build(self) -> None:
        kind = self._chosen()
        size = "spacing" if kind == "grid" else "edge_length"
        self.context.say("Building ...")
        self.context.session.change(body={"kind": kind, size: float(self.size.value)})
        self.context.say(f"Built: {len(self.context.session.body.cells):,} cells.")
