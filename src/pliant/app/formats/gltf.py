"""Animated glTF 2.0: opens in Blender and in browsers.

The first frame is the mesh; every other one is a morph target, and the animation fades linearly
from target to target, so players interpolate between frames as the engine's own viewer does. Units
are metres, y is up: glTF's conventions and ours are the same. The texture and colour of the mesh
that the body was made from go along.
"""

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.formats.surface_motion import SurfaceMotion
from pliant.core.errors import BadInput
from pliant.core.files import whole_file
from pliant.geometry.mesh_look import MeshLook

MOST_BYTES = 2**31
"""Of the binary part: its length field has 32 bits, and viewers give up long before."""

FLOAT, UINT = 5126, 5125
ARRAY, ELEMENTS, REPEAT = 34962, 34963, 10497
COLOUR = (0.16, 0.43, 0.55, 1.0)


class _Buffer:
    """Accessors over one binary buffer."""

    def __init__(self):
        self.parts: list[bytes] = []
        self.length = 0
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, values: np.ndarray, kind: str, *, target: int | None, bounds: bool) -> int:
        """Append an array (n,), (n, 2) or (n, 3); returns its accessor's index."""
        integer = values.dtype.kind in "iu"
        data = np.ascontiguousarray(values, np.uint32 if integer else np.float32)
        view: dict[str, Any] = {
            "buffer": 0, "byteOffset": self.length, "byteLength": data.nbytes
        }  # fmt: skip
        if target is not None:
            view["target"] = target
        accessor: dict[str, Any] = {
            "bufferView": len(self.views), "componentType": UINT if integer else FLOAT,
            "count": len(data), "type": kind,
        }  # fmt: skip
        if bounds:
            rows = data.reshape(len(data), -1)
            accessor["min"] = [float(v) for v in rows.min(axis=0)]
            accessor["max"] = [float(v) for v in rows.max(axis=0)]
        self.parts.append(data.tobytes())  # multiples of four bytes: aligned as they come
        self.length += data.nbytes
        self.views.append(view)
        self.accessors.append(accessor)
        return len(self.accessors) - 1

    def add_bytes(self, data: bytes) -> int:
        """Append a file, padded to a multiple of four bytes; returns its view's index."""
        self.views.append({"buffer": 0, "byteOffset": self.length, "byteLength": len(data)})
        self.parts.append(data + b"\0" * (-len(data) % 4))
        self.length += len(self.parts[-1])
        return len(self.views) - 1


def write_gltf(
    path: str | Path,
    motion: SurfaceMotion,
    *,
    name: str = "body",
    progress: Callable[[int], None] | None = None,
) -> None:
    """One file, .glb (binary) or .gltf (JSON with the data inside)."""
    path = Path(path)
    if path.suffix.lower() not in (".glb", ".gltf"):
        raise BadInput(f"{path}: glTF files end in .glb or .gltf.")
    vertices = motion.vertex_count
    if 24 * vertices * len(motion) > MOST_BYTES:
        raise BadInput(
            f"{path}: {len(motion)} frames of {vertices} vertices are too much for one glTF file: "
            "use --every."
        )
    buffer = _Buffer()
    primitive, targets = _geometry(buffer, motion, progress)
    mesh: dict[str, Any] = {"name": name, "primitives": [primitive]}
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "pliant"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": name, "mesh": 0}],
        "meshes": [mesh],
        "materials": [{"name": name, "doubleSided": True}],
    }
    plain = _material(buffer, document, motion.look)
    if motion.colours is not None:
        plain |= {"baseColorFactor": [1.0, 1.0, 1.0, 1.0], "roughnessFactor": 1.0}
    document["materials"][0]["pbrMetallicRoughness"] = plain
    if targets:
        primitive["targets"] = targets
        mesh["weights"] = [0.0] * len(targets)
        mesh["extras"] = {"targetNames": [f"step {s}" for s in motion.steps[1:]]}
        document["animations"] = [_animation(buffer, motion, name)]
    document["accessors"], document["bufferViews"] = buffer.accessors, buffer.views
    data = b"".join(buffer.parts)
    _write(path, document, data)


def _material(buffer: _Buffer, document: dict[str, Any], look: MeshLook | None) -> dict[str, Any]:
    """Colour and texture; the texture's image is put into the document."""
    if look is None:
        return {"baseColorFactor": list(COLOUR), "metallicFactor": 0.0, "roughnessFactor": 0.6}
    material: dict[str, Any] = {
        "baseColorFactor": list(look.colour), "metallicFactor": look.metallic,
        "roughnessFactor": look.roughness,
    }  # fmt: skip
    if look.texture is not None:
        image = {"bufferView": buffer.add_bytes(look.texture), "mimeType": look.texture_type}
        document["images"], document["samplers"] = [image], [{"wrapS": REPEAT, "wrapT": REPEAT}]
        document["textures"] = [{"source": 0, "sampler": 0}]
        material["baseColorTexture"] = {"index": 0}
    return material


def _geometry(
    buffer: _Buffer, motion: SurfaceMotion, progress: Callable[[int], None] | None
) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """The primitive and its morph targets: differences to the first frame."""
    flat = motion.triangles.reshape(-1)
    primitive: dict[str, Any] = {"mode": 4, "material": 0}
    primitive["indices"] = buffer.add(flat, "SCALAR", target=ELEMENTS, bounds=True)
    targets: list[dict[str, int]] = []
    first: tuple[np.ndarray, np.ndarray] | None = None
    for k, (_, positions, normals) in enumerate(motion.frames()):
        if not np.isfinite(positions).all():
            raise BadInput(f"Frame {k} has positions that are not finite: nothing to export.")
        if first is None:
            first = positions, _unit(normals)
            primitive["attributes"] = {
                "POSITION": buffer.add(positions, "VEC3", target=ARRAY, bounds=True),
                "NORMAL": buffer.add(first[1], "VEC3", target=ARRAY, bounds=False),
            }
            if motion.look is not None and motion.look.uv is not None:
                downward = motion.look.uv * [1.0, -1.0] + [0.0, 1.0]
                primitive["attributes"]["TEXCOORD_0"] = buffer.add(
                    downward, "VEC2", target=ARRAY, bounds=False
                )
            if motion.colours is not None:
                primitive["attributes"]["COLOR_0"] = buffer.add(
                    _linear(motion.colours), "VEC3", target=ARRAY, bounds=False
                )
        else:
            moved, turned = positions - first[0], _unit(normals) - first[1]
            targets.append(
                {
                    "POSITION": buffer.add(moved, "VEC3", target=ARRAY, bounds=True),
                    "NORMAL": buffer.add(turned, "VEC3", target=ARRAY, bounds=False),
                }
            )
        if progress is not None:
            progress(k + 1)
    return primitive, targets


def _linear(colours: np.ndarray) -> np.ndarray:
    """sRGB to the linear light that glTF's vertex colours are (IEC 61966-2-1)."""
    bright = ((colours + 0.055) / 1.055) ** 2.4
    return np.where(colours <= 0.04045, colours / 12.92, bright)


def _unit(normals: np.ndarray) -> np.ndarray:
    """Normals as glTF wants them: of length one, also at vertices that no triangle uses."""
    return np.where(np.linalg.norm(normals, axis=1, keepdims=True) > 0.5, normals, [0.0, 1.0, 0.0])


def _animation(buffer: _Buffer, motion: SurfaceMotion, name: str) -> dict[str, Any]:
    """At the k-th time the weight of target k - 1 is one, of the others zero."""
    times = motion.times - motion.times[0]
    weights = np.eye(len(motion))[:, 1:]
    return {
        "name": name,
        "samplers": [
            {
                "input": buffer.add(times, "SCALAR", target=None, bounds=True),
                "output": buffer.add(weights.reshape(-1), "SCALAR", target=None, bounds=False),
                "interpolation": "LINEAR",
            }
        ],
        "channels": [{"sampler": 0, "target": {"node": 0, "path": "weights"}}],
    }


def _write(path: Path, document: dict[str, Any], data: bytes) -> None:
    with whole_file(path) as temporary:
        if path.suffix.lower() == ".gltf":
            uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode("ascii")
            document["buffers"] = [{"byteLength": len(data), "uri": uri}]
            temporary.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
            return
        document["buffers"] = [{"byteLength": len(data)}]
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        with temporary.open("wb") as stream:
            length = 12 + 8 + len(text) + 8 + len(data)
            stream.write(struct.pack("<4sII", b"glTF", 2, length))
            stream.write(struct.pack("<I4s", len(text), b"JSON") + text)
            stream.write(struct.pack("<I4s", len(data), b"BIN\0") + data)
