"""A mesh coloured by values at its vertices, smoothly, that can change many times a second.

viser's streaming meshes have one colour. Its GLB assets have vertex colours, but a page shows
nothing while it reads a new one; so there are several, and each is shown only when the pages have
had time to read it. Colours therefore lag by LAG.
"""

import json
import struct
import threading
import time
from typing import Any

import numpy as np

COLOURS = 16
"""Of the legend and of observed points."""

LAG = 0.12
"""Seconds from sending a mesh to showing it: what a page without a graphics card needs."""

SLOTS = 6
"""Assets in turn: one shown, the others on their way at 30 frames a second."""

FLOAT, UINT, ARRAY, ELEMENTS = 5126, 5125, 34962, 34963


def palette(count: int = COLOURS) -> list[tuple[int, int, int]]:
    """Colours from low to high."""
    from matplotlib import colormaps

    rows = colormaps["turbo"](np.linspace(0.08, 0.92, count))[:, :3]
    return [(int(r), int(g), int(b)) for r, g, b in (255 * rows).round()]


def css_gradient(count: int = COLOURS) -> str:
    """The palette as a CSS background."""
    stops = ", ".join(f"rgb{c}" for c in palette(count))
    return f"linear-gradient(to right, {stops})"


class ColouredMesh:
    """A mesh under one scene node; its assets are made when first needed."""

    def __init__(self, scene: Any, name: str):
        self._scene, self._name = scene, name
        self._slots: list[_Slot] = []
        self._shown: _Slot | None = None
        self._waiting: list[_Slot] = []
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._table: np.ndarray | None = None

    def show(self, vertices: np.ndarray, faces: np.ndarray, values: np.ndarray) -> None:
        """Triangles (faces, 3) of vertices (n, 3) by values (n,) between 0 and 1."""
        if len(faces) == 0:
            self.hide()
            return
        data = coloured_glb(vertices, faces, self._colours(values))
        with self._lock:
            slot = self._free(data)
            slot.handle.glb_data = data
            slot.sent = time.monotonic()
            if self._shown is None:  # nothing to keep meanwhile
                slot.handle.visible = True
                self._shown = slot
                return
            self._waiting.append(slot)
            self._promote()

    def hide(self) -> None:
        """Show nothing."""
        with self._lock:
            self._waiting = []
            if self._shown is not None:
                self._shown.handle.visible = False
                self._shown = None

    def remove(self) -> None:
        """Take the meshes out of the scene."""
        with self._lock:
            for slot in self._slots:
                slot.handle.remove()
            self._slots, self._waiting, self._shown = [], [], None

    def _colours(self, values: np.ndarray) -> np.ndarray:
        """Linear light (n, 3) of values (n,), as glTF wants it."""
        if self._table is None:
            srgb = np.array(palette(256)) / 255.0
            curve = ((srgb + 0.055) / 1.055) ** 2.4
            self._table = np.where(srgb <= 0.04045, srgb / 12.92, curve).astype(np.float32)
        share = np.clip(np.nan_to_num(values), 0.0, 1.0)
        return self._table[(255.0 * share + 0.5).astype(np.uint8)]

    def _free(self, data: bytes) -> "_Slot":
        """A slot that is neither shown nor waiting; else the one that waits the shortest."""
        for slot in self._slots:
            if slot is not self._shown and slot not in self._waiting:
                return slot
        if len(self._slots) < SLOTS:
            name = f"{self._name}/{len(self._slots)}"
            handle = self._scene.add_glb(  # its own shadow on itself would speckle
                name, glb_data=data, visible=False, receive_shadow=False
            )
            made = _Slot(handle)
            self._slots.append(made)
            return made
        return self._waiting.pop()

    def _promote(self) -> None:
        """Show the latest mesh that pages have read by now; look again later if others wait."""
        now = time.monotonic()
        read = [slot for slot in self._waiting if now - slot.sent >= LAG]
        if read and self._shown is not None:
            read[-1].handle.visible = True
            self._shown.handle.visible = False
            self._shown = read[-1]
            self._waiting = self._waiting[len(read) :]
        if self._waiting and self._timer is None:
            self._timer = threading.Timer(LAG, self._later)
            self._timer.daemon = True
            self._timer.start()

    def _later(self) -> None:
        with self._lock:
            self._timer = None
            self._promote()


class _Slot:
    def __init__(self, handle: Any):
        self.handle, self.sent = handle, 0.0


def coloured_glb(vertices: np.ndarray, faces: np.ndarray, colours: np.ndarray) -> bytes:
    """A binary glTF of triangles with colours (n, 3) in linear light at the vertices."""
    points = np.ascontiguousarray(vertices, np.float32)
    parts = [
        points.tobytes(), np.ascontiguousarray(colours, np.float32).tobytes(),
        np.ascontiguousarray(faces, np.uint32).tobytes(),
    ]  # fmt: skip
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    views = [
        {"buffer": 0, "byteOffset": start, "byteLength": len(part), "target": target}
        for start, part, target in zip(starts, parts, (ARRAY, ARRAY, ELEMENTS), strict=False)
    ]
    accessors = [
        {"bufferView": 0, "componentType": FLOAT, "count": len(points), "type": "VEC3",
         "min": points.min(axis=0).tolist(), "max": points.max(axis=0).tolist()},
        {"bufferView": 1, "componentType": FLOAT, "count": len(points), "type": "VEC3"},
        {"bufferView": 2, "componentType": UINT, "count": 3 * len(faces), "type": "SCALAR"},
    ]  # fmt: skip
    document = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "COLOR_0": 1}, "indices": 2,
                                    "material": 0}]}],
        "materials": [{"doubleSided": True,
                       "pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 1.0}}],
        "accessors": accessors, "bufferViews": views, "buffers": [{"byteLength": starts[-1]}],
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    data = b"".join(parts)
    return b"".join((
        struct.pack("<4sII", b"glTF", 2, 28 + len(text) + len(data)),
        struct.pack("<I4s", len(text), b"JSON"), text,
        struct.pack("<I4s", len(data), b"BIN\0"), data,
    ))  # fmt: skip
