"""Bad files of meshes: surfaces and cells; cut off, lying, too large, or no files at all."""

import json
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hostile_case import BLOCK, OUT, REFUSED, TAKEN, WARNED, Case, toml_text

CUTS = 24
"""Lengths at which a file is cut off."""

FREE = {k: v for k, v in BLOCK.items() if k not in ("fixed", "shape")}


def mesh_cases() -> Iterator[Case]:
    """All of them."""
    yield from _cut_meshes()
    yield from _lying_meshes()
    yield from _large_meshes()
    yield from _simplices()
    yield from _no_files()


def shaped(name: str, data: Any, expected: str = REFUSED, title: str = "") -> Case:
    """A shape file read alone; data may be a function that makes it."""

    def make(folder: Path):
        from pliant.geometry.load import load_shape

        (folder / name).write_bytes(data() if callable(data) else data)
        return lambda: load_shape(folder / name)

    return Case(f"{name}: {title}" if title else name, make, expected)


# --- surfaces


@cache
def ball(format_name: str) -> bytes:
    """A closed ball of 320 triangles."""
    import trimesh

    mesh = trimesh.creation.icosphere(subdivisions=2)
    if format_name == "ply":
        return trimesh.exchange.ply.export_ply(mesh, encoding="binary")
    if format_name == "ascii.ply":
        return trimesh.exchange.ply.export_ply(mesh, encoding="ascii")
    if format_name == "ascii.stl":
        return trimesh.exchange.stl.export_stl_ascii(mesh).encode()
    out = mesh.export(file_type=format_name)
    return out.encode() if isinstance(out, str) else out


MESHES = ("ply", "ascii.ply", "off", "obj", "stl", "ascii.stl", "glb")


def _cut_meshes() -> Iterator[Case]:
    for form in MESHES:
        yield shaped(f"whole.{form}", lambda form=form: ball(form), TAKEN)
        for k in range(1, CUTS):
            # OBJ states no counts: what is left may be a ball with holes, which is said
            some = form == "obj" and k > 0.4 * CUTS
            part = lambda form=form, k=k: cut(ball(form), k)  # noqa: E731
            if form == "obj" and 0.4 * CUTS < k:
                yield Case(f"cut.obj at {k}/{CUTS}", _cut_obj(k), WARNED if some else REFUSED)
            else:
                yield shaped(f"cut.{form}", part, title=f"at {k}/{CUTS}")


def cut(data: bytes, k: int) -> bytes:
    """The first k of CUTS parts."""
    return data[: len(data) * k // CUTS]


def _cut_obj(k: int) -> Callable[[Path], Any]:
    """An OBJ file that ends at a line: all its vertices, k / CUTS of its faces."""

    def make(folder: Path):
        from pliant.geometry.load import load_shape

        lines = ball("obj").decode().splitlines()
        points = [x for x in lines if x.startswith("v ")]
        faces = [x for x in lines if x.startswith("f ")]
        kept = faces[: max(len(faces) * 3 // 4, len(faces) * k // CUTS)]
        (folder / "a.obj").write_text("\n".join([*points, *kept]) + "\n")
        return lambda: load_shape(folder / "a.obj")

    return make


def _ply(vertices: list, faces: list, *, vertex_count=None, face_count=None, kind="double") -> str:
    head = (
        f"ply\nformat ascii 1.0\nelement vertex {vertex_count or len(vertices)}\n"
        + "".join(f"property {kind} {a}\n" for a in "xyz")
        + f"element face {face_count or len(faces)}\nproperty list uchar int vertex_indices\n"
        "end_header\n"
    )
    rows = [" ".join(map(str, v)) for v in vertices]
    rows += [" ".join(map(str, [len(f), *f])) for f in faces]
    return head + "\n".join(rows) + "\n"


CORNERS = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
SIDES = [
    [0, 2, 3], [0, 3, 1], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4], [2, 6, 7], [2, 7, 3],
    [0, 4, 6], [0, 6, 2], [1, 3, 7], [1, 7, 5],
]  # fmt: skip


def _lying_meshes() -> Iterator[Case]:
    def text(name: str, content: str, title: str, expected: str = REFUSED) -> Case:
        return shaped(name, content.encode("latin-1"), expected, title)

    yield text("cube.ply", _ply(CORNERS, SIDES), "as it is", TAKEN)
    for bad in ("nan", "inf", "-inf", "1e308", "1e400", "x", "", "--1", "0x10", "1,5"):
        points = [[bad, 0, 0], *CORNERS[1:]]
        yield text("a.ply", _ply(points, SIDES), f"coordinate {bad!r}")
        rows = [f"v {' '.join(map(str, p))}" for p in points]
        rows += [f"f {' '.join(str(i + 1) for i in f)}" for f in SIDES]
        yield text("a.obj", "\n".join(rows) + "\n", f"coordinate {bad!r}")
        off = [f"OFF\n8 12 0\n{bad} 0 0", *(" ".join(map(str, p)) for p in CORNERS[1:])]
        off += [" ".join(map(str, [3, *f])) for f in SIDES]
        yield text("a.off", "\n".join(off) + "\n", f"coordinate {bad!r}")
    for bad in (8, -1, 10**6, 10**12, 2**31, 2**32 + 1, 2**64, -(2**63), "x", 1.5, "nan"):
        wrong = [[0, 2, bad], *SIDES[1:]]
        yield text("a.ply", _ply(CORNERS, wrong), f"index {bad}")
        rows = ["OFF\n8 12 0", *(" ".join(map(str, p)) for p in CORNERS)]
        rows += [" ".join(map(str, [3, *f])) for f in wrong]
        yield text("a.off", "\n".join(rows) + "\n", f"index {bad}")
    for count in (9, 100, 10**7, 10**12, 10**20, -1, "x", "1e3", 3):
        yield text("a.ply", _ply(CORNERS, SIDES, vertex_count=count), f"{count} vertices promised")
        yield text("b.ply", _ply(CORNERS, SIDES, face_count=count), f"{count} faces promised")
        body = "\n".join(" ".join(map(str, p)) for p in CORNERS)
        sides = "\n".join(" ".join(map(str, [3, *f])) for f in SIDES)
        yield text("a.off", f"OFF\n{count} 12 0\n{body}\n{sides}\n", f"{count} vertices promised")
        yield text("b.off", f"OFF\n8 {count} 0\n{body}\n{sides}\n", f"{count} faces promised")
    for kind in ("quaternion", "list", "", "int128"):
        yield text("a.ply", _ply(CORNERS, SIDES, kind=kind), f"properties of type {kind!r}")
    stl = bytearray(ball("stl"))
    for count in (0, 1, 319, 321, 10**6, 2**32 - 1):
        lying = bytes(stl[:80]) + struct.pack("<I", count) + bytes(stl[84:])
        yield shaped("a.stl", lying, title=f"{count} triangles promised")
    normal = bytearray(stl)
    normal[84:96] = struct.pack("<3f", np.nan, np.inf, -np.inf)
    yield shaped("normal.stl", bytes(normal), TAKEN, "one bad normal")
    corner = bytearray(stl)
    corner[96:100] = struct.pack("<f", np.nan)
    yield shaped("corner.stl", bytes(corner), title="one bad corner")
    words = ball("ascii.stl").decode()
    at = words.index("facet normal") + 13
    end = words.index("\n", at)
    yield text("n.stl", words[:at] + "x y z" + words[end:], "one bad normal, as text", TAKEN)
    yield text("v.stl", words.replace("vertex", "vertex x", 1), "one bad corner, as text")
    open_box = _ply(CORNERS, SIDES[2:])
    yield text("open.ply", open_box, "a side is missing", WARNED)
    rows = [f"v {' '.join(map(str, p))}" for p in CORNERS]
    rows += [f"f {' '.join(str(i + 1) for i in f)}" for f in SIDES[2:]]
    yield text("open.obj", "\n".join(rows) + "\n", "a side is missing", WARNED)
    yield text("flat.ply", _ply([[x, y, 0] for x, y, _ in CORNERS], SIDES), "flat")
    yield text("inf.ply", _ply([[1e30 * c for c in p] for p in CORNERS], SIDES), "1e30 m wide")
    for name, data in {"zeros": bytes(3000), "noise": np.random.default_rng(1).bytes(3000),
                       "one byte": b"p", "text": b"hello\n" * 99}.items():  # fmt: skip
        for form in ("ply", "obj", "stl", "off", "glb"):
            yield shaped(f"a.{form}", data, title=name)


def _glb(tree: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    data += bytes(-len(data) % 4)
    parts = struct.pack("<I4s", len(text), b"JSON") + text
    parts += struct.pack("<I4s", len(data), b"BIN\0") + data if data else b""
    return struct.pack("<4sII", b"glTF", 2, 12 + len(parts)) + parts


def instances(count: int) -> bytes:
    """One small mesh, drawn very often."""
    points, faces = np.array(CORNERS, "<f4"), np.array(SIDES, "<u4")
    data = points.tobytes() + faces.tobytes()
    tree = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": list(range(count))}],
        "nodes": [{"mesh": 0, "translation": [float(k), 0.0, 0.0]} for k in range(count)],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "buffers": [{"byteLength": len(data)}],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": points.nbytes},
            {"buffer": 0, "byteOffset": points.nbytes, "byteLength": faces.nbytes},
        ],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 8, "type": "VEC3",
             "min": [0, 0, 0], "max": [1, 1, 1]},
            {"bufferView": 1, "componentType": 5125, "count": 36, "type": "SCALAR"},
        ],
    }  # fmt: skip
    return _glb(tree, data)


def soup(count: int) -> bytes:
    """Loose triangles without a common edge, as binary STL."""
    rng = np.random.default_rng(5)
    row = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    rows = np.zeros(count, row)
    rows["corners"] = rng.random((count, 1, 3)) + 0.01 * rng.random((count, 3, 3))
    return bytes(80) + struct.pack("<I", count) + rows.tobytes()


def _large_meshes() -> Iterator[Case]:
    def groups(word: str, subdivisions: int) -> bytes:
        import trimesh

        mesh = trimesh.creation.icosphere(subdivisions=subdivisions)
        rows = [f"v {x} {y} {z}" for x, y, z in mesh.vertices]
        rows += [f"{word} g{k}\nf {a} {b} {c}" for k, (a, b, c) in enumerate(mesh.faces + 1)]
        return "\n".join(rows).encode()

    for word in ("g", "o", "usemtl", "s"):
        yield shaped(f"{word}.obj", lambda w=word: groups(w, 1), TAKEN, "80 groups")
    yield shaped("groups.obj", lambda: groups("g", 6), TAKEN, "82,000 groups")
    yield shaped("soup.stl", lambda: soup(20_000), title="20,000 loose triangles")
    yield shaped("soup.stl", lambda: soup(1_000_000), title="a million loose triangles")
    yield shaped("many.glb", lambda: instances(2), TAKEN, "2 instances")
    yield shaped("many.glb", lambda: instances(50_000), title="50,000 instances")
    loop = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
            "nodes": [{"children": [0]}], "meshes": []}  # fmt: skip
    yield shaped("loop.glb", _glb(loop), title="a node that is its own child")
    far = {"asset": {"version": "2.0"}, "buffers": [{"byteLength": 10**15, "uri": "/etc/passwd"}]}
    yield shaped("far.glb", _glb(far), title="data elsewhere")
    claims = struct.pack("<4sII", b"glTF", 2, 2**32 - 1) + struct.pack("<I4s", 2**32 - 1, b"JSON")
    yield shaped("claims.glb", claims + b"{}", title="four gigabytes promised")


# --- cells


@cache
def tets(suffix: str) -> bytes:
    """A cube of six tetrahedra."""
    import tempfile

    from pliant.fem.bodies.simplex_files import save_simplices

    cells = [[0, 1, 3, 7], [0, 1, 5, 7], [0, 2, 3, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 4, 6, 7]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"cube{suffix}"
        save_simplices(path, np.array(CORNERS, float), np.array(cells))
        return path.read_bytes()


def _simplices() -> Iterator[Case]:
    def case(suffix: str, data: Any, title: str) -> Case:
        def make(folder: Path):
            from pliant.fem.bodies.tet_body import TetBody

            (folder / f"a{suffix}").write_bytes(data() if callable(data) else data)
            return lambda: TetBody(str(folder / f"a{suffix}"))

        return Case(f"cells{suffix}: {title}", make)

    for suffix in (".msh", ".vtu", ".vtk", ".mesh"):
        for k in range(1, CUTS - 1):
            yield case(suffix, lambda s=suffix, k=k: cut(tets(s), k), f"cut at {k}/{CUTS}")
        for name, data in {"empty": b"", "zeros": bytes(2000), "text": b"hello\n" * 50}.items():
            yield case(suffix, data, name)

        if suffix == ".mesh":
            yield case(suffix, lambda: tets(".mesh").replace(b"8 1\n", b"99 1\n"), "a node 99")


# --- what is no file at all


ENDINGS = (
    ".ply", ".obj", ".stl", ".off", ".glb", ".npz", ".npy", ".nrrd", ".nii", ".nii.gz", ".xyz", "",
)  # fmt: skip


def no_files(path: Path) -> dict[str, Callable[[], Any]]:
    """Ways in which a path can be something else than a file with something in it."""
    return {
        "a pipe": lambda: os.mkfifo(path), "a folder": path.mkdir, "empty": path.touch,
        "endless": lambda: path.symlink_to("/dev/zero"), "a loop": lambda: path.symlink_to(path),
        "a link to nothing": lambda: path.symlink_to("nowhere"), "missing": lambda: None,
    }  # fmt: skip


def _no_files() -> Iterator[Case]:
    for ending in ENDINGS:
        for kind in no_files(Path()):

            def make(folder: Path, ending=ending, kind=kind):
                path = folder / f"shape{ending}"
                no_files(path)[kind]()
                table = FREE | {"shape": {"type": "mesh" if "n" not in ending else "field",
                                          "file": path.name}}  # fmt: skip
                (folder / "scene.toml").write_text(toml_text(table))
                return ["simulate", "scene.toml", "--out", OUT]

            yield Case(f"shape{ending}: {kind}", make)
    for kind in no_files(Path()):
        for suffix in (".msh", ".vtu"):

            def cells(folder: Path, kind=kind, suffix=suffix):
                no_files(folder / f"a{suffix}")[kind]()
                table = FREE | {"body": {"kind": "tets", "file": f"a{suffix}"}}
                (folder / "scene.toml").write_text(toml_text(table))
                return ["simulate", "scene.toml", "--out", OUT]

            yield Case(f"a body of cells{suffix}: {kind}", cells)
