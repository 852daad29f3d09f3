"""How a mesh file looks: texture coordinates, a texture, a colour. Shapes have no use for these.

Of an OBJ file the materials and pictures are other files: they are read only if they lie beside it
under plain names, and only pictures and .mtl files are.
"""

import io
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from pliant.core.errors import BadInput
from pliant.core.files import read_bytes
from pliant.geometry.mesh_files import MAX_FILE_BYTES, quiet_trimesh
from pliant.geometry.mesh_promises import checked
from pliant.geometry.mesh_shape import MeshShape

_log = logging.getLogger(__name__)

BESIDE = (".mtl", ".png", ".jpg", ".jpeg")
"""Endings of files that an OBJ may name."""

MOST_BYTES = 64 * 1024**2
"""Of such a file."""

MOST_PIXELS = 8192
"""Of a texture's side."""

MOST_MATERIALS = 256
"""Changes of the material in an OBJ file: its reader is slow with many."""

_OBJ_LINES = re.compile(rb"^[ \t]*((?:v|vt|f|mtllib|usemtl)[ \t][^\r\n]*)", flags=re.M)

FORMATS = (".obj", ".glb", ".ply")
"""Files that may have texture coordinates."""


@dataclass(frozen=True)
class MeshLook:
    """The look of a MeshShape whose vertices may be split along the seams of its texture.

    vertex: (n,) the shape's vertex that each one here is; triangles: (m, 3) of these; uv: (n, 2),
    v upward, None without a texture; texture: PNG or JPEG bytes, or None; colour: RGBA in linear
    light, 0 to 1; metallic, roughness: 0 to 1.
    """

    vertex: np.ndarray
    triangles: np.ndarray
    uv: np.ndarray | None
    texture: bytes | None
    colour: tuple[float, float, float, float]
    metallic: float = 0.0
    roughness: float = 0.6

    @property
    def texture_type(self) -> str:
        """MIME type of the texture."""
        png = self.texture is not None and self.texture.startswith(b"\x89PNG")
        return "image/png" if png else "image/jpeg"


def look_of(shape: MeshShape) -> MeshLook | None:
    """The look of the file that a shape comes from; None if it has none, or is gone."""
    path = Path((shape.source or {}).get("file", ""))
    if path.suffix.lower() not in FORMATS or not path.is_file():
        return None
    try:
        loaded = _loaded(path)
        return _look(shape, loaded)
    except Exception as error:  # a look is an extra: whatever is wrong with it, the shape is there
        _log.warning("%s: its texture or material cannot be used (%s).", path, error)
        return None


def _loaded(path: Path) -> Any:
    import trimesh

    data = read_bytes(path, limit=MAX_FILE_BYTES)
    if path.suffix.lower() == ".obj":
        lines = _OBJ_LINES.findall(data)
        if sum(line.startswith(b"usemtl") for line in lines) > MOST_MATERIALS:
            raise BadInput(f"it changes its material more than {MOST_MATERIALS} times")
        data = b"\n".join(lines) + b"\n"
    else:
        data = checked(data, path.suffix.lower())
    with quiet_trimesh():
        return trimesh.load(
            io.BytesIO(data), file_type=path.suffix.lower()[1:], force="mesh", process=False,
            resolver=_beside(path.parent), maintain_order=True,
        )  # fmt: skip


def _beside(folder: Path) -> Any:
    """What trimesh asks for the files that a mesh names."""
    from trimesh.resolvers import Resolver

    class Beside(Resolver):
        def __init__(self):
            pass

        def get(self, name: str) -> bytes:
            plain = Path(str(name).strip())
            path = folder / plain.name
            if plain.name != str(plain) or plain.suffix.lower() not in BESIDE or path.is_symlink():
                raise BadInput(f"'{name}' is no picture or material beside the mesh")
            return read_bytes(path, limit=MOST_BYTES)

        def write(self, name: str, data: bytes) -> None:
            raise BadInput("nothing is written")

        def namespaced(self, namespace: str) -> Any:
            raise BadInput(f"'{namespace}' is no picture or material beside the mesh")

        def keys(self) -> Any:
            return []

    return Beside()


def _look(shape: MeshShape, loaded: Any) -> MeshLook | None:
    visual = getattr(loaded, "visual", None)
    uv, material = getattr(visual, "uv", None), getattr(visual, "material", None)
    if uv is None or material is None:
        return None
    vertices = np.asarray(loaded.vertices, float)
    uv = np.asarray(uv, float)
    if uv.shape != (len(vertices), 2) or not np.isfinite(uv).all():
        return None
    apart, vertex = KDTree(shape.vertices).query(vertices)
    triangles = np.asarray(loaded.faces, np.int64)
    used = np.zeros(len(vertices), bool)
    used[triangles] = True
    if (np.asarray(apart)[used] > 0.0).any():
        return None  # another file by now
    if np.einsum("ij,ij->", *_volume_terms(vertices, triangles)) < 0.0:
        triangles = triangles[:, ::-1]  # as the shape turned its own
    pbr = material.to_pbr() if hasattr(material, "to_pbr") else material
    return MeshLook(
        np.asarray(vertex, np.int64), triangles, uv, _texture(pbr), _colour(pbr),
        _share(pbr.metallicFactor, 0.0), _share(pbr.roughnessFactor, 0.6),
    )  # fmt: skip


def _volume_terms(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b, c = np.moveaxis((vertices - vertices[triangles].mean(axis=(0, 1)))[triangles], 1, 0)
    return a, np.cross(b, c)


def _texture(material: Any) -> bytes | None:
    image = material.baseColorTexture
    if image is None:
        return None
    if max(image.size) > MOST_PIXELS:
        raise BadInput(f"a texture of {image.size[0]} x {image.size[1]} pixels is too large")
    stream = io.BytesIO()
    (image if image.mode in ("RGB", "RGBA", "L") else image.convert("RGBA")).save(stream, "PNG")
    return stream.getvalue()


def _colour(material: Any) -> tuple[float, float, float, float]:
    """RGBA in 0 to 1; trimesh holds it in 0 to 255."""
    given = material.baseColorFactor
    if given is None:
        return (1.0, 1.0, 1.0, 1.0)
    values = np.asarray(given, float)
    values = values / 255.0 if np.asarray(given).dtype.kind in "iu" else values
    r, g, b, a = np.clip([*values, 1.0][:4], 0.0, 1.0)
    return float(r), float(g), float(b), float(a)


def _share(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(np.clip(value, 0.0, 1.0))
