"""Files: open, save as TOML, export, screenshot; everything stays in the served folder."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.scene_files import build_scene, read_description
from pliant.app.describing.scenes import builtin_description, scene_names
from pliant.app.editor.context import Context
from pliant.app.editor.folder import inside, plain_name
from pliant.app.folders.export import FrameWriter, write_index, write_surface
from pliant.core.errors import BadInput
from pliant.core.files import whole_file

FORMATS = {
    "surface, PLY": ".ply", "surface, OBJ": ".obj", "surface, STL": ".stl",
    "all frames, glTF (Blender, browsers)": ".glb", "all frames, ParaView (zip)": ".zip",
}  # fmt: skip
PICTURE = (960, 1280)
"""Rows and columns of a screenshot."""


class FilesPanel:
    """Names are plain file names; each written file can be downloaded from here."""

    def __init__(self, context: Context, *, can_open: bool = True):
        self.context = context
        gui = context.gui
        self._can_open = can_open
        if can_open:
            self.choice = gui.add_dropdown(
                "Scene", ("-",), initial_value="-", hint="Built-in scenes and files of the folder."
            )
            self.open = gui.add_button("Open", icon="folder-open")
            self.name = gui.add_text("Save as", "scene.toml", hint="A file name ending in .toml.")
            self.save = gui.add_button("Save", icon="device-floppy")
            context.on_click(self.open, lambda _: self._open())
            context.on_click(self.save, lambda _: self._save())
            gui.add_divider()
        self.format = gui.add_dropdown("Format", tuple(FORMATS), initial_value="surface, PLY")
        self.export = gui.add_button(
            "Export", icon="file-export", hint="The frame that is shown, or all of them."
        )
        self.screenshot = gui.add_button("Screenshot", icon="camera")
        self.written = gui.add_markdown("")
        context.on_click(self.export, lambda _: self._export())
        context.on_click(self.screenshot, self._screenshot)
        self._links: list[str] = []

    def refresh(self) -> None:
        """List the files of the folder."""
        if not self._can_open:
            return
        files = sorted(p.name for p in self.context.folder.glob("*.toml") if p.is_file())
        names = tuple([f"built in: {n}" for n in scene_names()] + files)
        if self.choice.options != names:
            self.choice.options = names
        if self.context.session.name in files:
            self.name.value = self.context.session.name

    def _open(self) -> None:
        chosen = self.choice.value
        if chosen.startswith("built in: "):
            name = chosen.removeprefix("built in: ")
            description = builtin_description(name)
        else:
            name = plain_name(chosen, suffixes=(".toml",))
            description = read_description(inside(self.context.folder, name))
        scene = require_elastic(build_scene(description, name=name), "The editor")
        self.context.session.open(scene, name)
        self.context.say(f"{name} is open.")

    def _save(self) -> None:
        name = plain_name(self.name.value, suffixes=(".toml",))
        self.context.session.save(inside(self.context.folder, name))
        self._link(name)
        self.refresh()
        self.context.say(f"Saved as {name}.")

    def _export(self) -> None:
        ending = FORMATS[self.format.value]
        session = self.context.session
        stem = Path(session.name).stem.replace(" ", "_") or "scene"
        if ending == ".zip":
            name = f"{stem}_frames.zip"
            self._write_all(inside(self.context.folder, name))
        elif ending == ".glb":
            name = f"{stem}.glb"
            self._write_gltf(inside(self.context.folder, name))
        else:
            frame = self._shown()
            u = np.zeros_like(session.body.nodes) if frame is None else frame.u
            if session.body.dim != 3:
                raise BadInput("A 2D body has no surface of triangles: export all frames.")
            step = 0 if frame is None else frame.step
            name = f"{stem}_{step:05d}{ending}"
            write_surface(inside(self.context.folder, name), session.body, u)
        self._link(name)
        self.context.say(f"Exported {name}.")

    def _shown(self) -> Any:
        return getattr(self, "shown_frame", lambda: None)()

    def _write_gltf(self, path: Path) -> None:
        """All frames as one animation."""
        from pliant.app.formats.gltf import write_gltf
        from pliant.app.formats.surface_motion import SurfaceMotion
        from pliant.fem.bodies.render_mesh import own_surface, skin_of
        from pliant.geometry.mesh_look import look_of

        body, history = self.context.session.body, self.context.session.history
        if body.dim != 3:
            raise BadInput("A 2D body has no triangles to export: choose ParaView.")
        self._require_frames()
        frames = [history[i] for i in range(len(history))]
        times = np.array([f.t for f in frames])
        nodes = np.stack([body.nodes + f.u for f in frames])
        mesh = skin_of(body) or own_surface(body)
        look = None if mesh.shape is None else look_of(mesh.shape)
        motion = SurfaceMotion(mesh, times, nodes, np.array([f.step for f in frames]), look)
        write_gltf(path, motion, name=path.stem)

    def _require_frames(self) -> None:
        if len(self.context.session.history) == 0:
            raise BadInput("There are no frames yet: press Play first.")

    def _write_all(self, path: Path) -> None:
        """VTU frames and their index in one archive."""
        import tempfile

        session = self.context.session
        self._require_frames()
        writer = FrameWriter(session.scene)
        with (
            whole_file(path) as temporary,
            zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            tempfile.TemporaryDirectory() as folder,
        ):
            entries = []
            for i in range(len(session.history)):
                frame = session.history[i]
                file = Path(folder) / f"frame_{frame.step:06d}.vtu"
                writer.write(file, frame.u.astype(float))
                archive.write(file, file.name)
                file.unlink()
                entries.append((frame.t, file.name))
            index = Path(folder) / "frames.pvd"
            write_index(index, entries)
            archive.write(index, index.name)

    def _screenshot(self, client: Any) -> None:
        if client is None:
            return
        from PIL import Image

        pixels = client.get_render(height=PICTURE[0], width=PICTURE[1], transport_format="png")
        if pixels.shape[2] == 4:  # over white
            alpha = pixels[..., 3:] / 255.0
            pixels = (pixels[..., :3] * alpha + 255.0 * (1.0 - alpha)).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, format="PNG", optimize=True)
        name = f"screenshot_{len(list(self.context.folder.glob('screenshot_*.png'))) + 1:03d}.png"
        with whole_file(inside(self.context.folder, name)) as temporary:
            temporary.write_bytes(stream.getvalue())
        self._link(name)
        self.context.say(f"{name} is written.")

    def _link(self, name: str) -> None:
        link = f"[{name}](files/{name.replace(' ', '%20')})"
        self._links = [link, *(other for other in self._links if other != link)][:6]
        self.written.content = "Written: " + ", ".join(self._links)
