"""Broken and hostile files: each ends in BadInput that names the file, in less than 5 s."""

import gzip
import io
import pickle
import struct
import time
import zipfile

import numpy as np
import pytest
import trimesh

from pliant.core.errors import BadInput
from pliant.geometry import MeshShape, load_shape, sample
from pliant.geometry import shapes as s
from waiting import PATIENCE

BALL = sample(s.sphere(radius=1), spacing=0.2)
CUBE = trimesh.creation.box()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npy_header(shape, descr="<f8"):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (64 - (len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npz(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


def field_npz(**changes):
    parts = {"values": npy(BALL.values), "origin": npy(np.array(BALL.origin)), "spacing": npy(0.2)}
    return npz(**{**parts, **changes})


def mesh_bytes(suffix, vertices=CUBE.vertices, faces=CUBE.faces):
    data = trimesh.Trimesh(vertices, faces, process=False).export(file_type=suffix)
    return data.encode() if isinstance(data, str) else data


def ply(vertices, faces, count=None):
    head = f"ply\nformat ascii 1.0\nelement vertex {count or len(vertices)}\n"
    head += "property float x\nproperty float y\nproperty float z\n"
    head += f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    rows = [" ".join(str(c) for c in v) for v in vertices]
    rows += [f"{len(f)} " + " ".join(str(i) for i in f) for f in faces]
    return (head + "\n".join(rows) + "\n").encode()


def nrrd(sizes=(4, 4, 4), data=b"", encoding="raw", kind="double", extra="spacings: 1 1 1\n"):
    head = f"NRRD0004\ntype: {kind}\ndimension: {len(sizes)}\n"
    head += f"sizes: {' '.join(map(str, sizes))}\nencoding: {encoding}\nendian: little\n{extra}\n"
    return head.encode() + data


def nifti(values=None, affine=None, shape=None):
    nibabel = pytest.importorskip("nibabel")
    values = BALL.values if values is None else values
    image = nibabel.Nifti1Image(values, np.eye(4) if affine is None else affine)
    data = bytearray(image.to_bytes())
    if shape is not None:  # a forged header: dim[0..7] are int16 at byte 40
        data[40:56] = struct.pack("<8h", len(shape), *shape, *[1] * (7 - len(shape)))
    return bytes(data)


def turned():
    affine = np.eye(4)
    affine[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    return affine


def half(data):
    return data[: len(data) // 2]


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a file was unpickled",))


ZEROS = gzip.compress(bytes(1 << 26), 9)
HOSTILE = npy_header((8, 8, 8), "|O") + pickle.dumps(np.array([Bomb()], dtype=object))
NAN_BALL = np.where(BALL.values < -0.7, np.nan, BALL.values)
SHEET = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0.05), (0, 1, 0)])

# The most a header can claim while its bytes are few.
FILES = {
    # fields in NumPy's formats
    "empty.npz": b"",
    "text.npz": b"hello",
    "cut.npz": field_npz()[:-400],
    "flipped.npz": field_npz()[:300] + b"\xff" * 50 + field_npz()[350:],
    "novalues.npz": npz(origin=npy(np.zeros(3))),
    "pickled.npz": npz(values=HOSTILE, spacing=npy(0.1)),
    "huge.npz": npz(values=npy_header((100000, 100000, 1000)), spacing=npy(0.1)),
    "overflow.npz": npz(values=npy_header((2**40, 2**40, 2**40)), spacing=npy(0.1)),
    "negative.npz": npz(values=npy_header((-4, 4, 4)) + bytes(1 << 26), spacing=npy(0.1)),
    "bomb.npz": npz(values=npy_header((4, 4, 4)) + bytes(1 << 26), spacing=npy(0.1)),
    "longorigin.npz": npz(values=npy(BALL.values), origin=npy_header((2**28,)), spacing=npy(0.1)),
    "short.npz": npz(values=npy_header((400, 400, 400)) + bytes(80), spacing=npy(0.1)),
    "nan.npz": field_npz(values=npy(NAN_BALL)),
    "infinite.npz": field_npz(values=npy(np.full((3, 3, 3), -np.inf))),
    "outside.npz": field_npz(values=npy(np.abs(BALL.values) + 1)),
    "line.npz": field_npz(values=npy(np.linspace(-1, 1, 9))),
    "four.npz": field_npz(values=npy(np.zeros((3, 3, 3, 3)))),
    "scalar.npz": field_npz(values=npy(np.float64(-1.0))),
    "none.npz": field_npz(values=npy(np.zeros((0, 3, 3)))),
    "thin.npz": field_npz(values=npy(-np.ones((1, 5, 5)))),
    "complex.npz": field_npz(values=npy(BALL.values * 1j)),
    "words.npz": field_npz(values=npy(np.full((3, 3), "abc"))),
    "nospacing.npz": npz(values=npy(BALL.values)),
    "zerospacing.npz": field_npz(spacing=npy(0.0)),
    "nanspacing.npz": field_npz(spacing=npy(np.nan)),
    "origin2.npz": field_npz(origin=npy(np.zeros(2))),
    "stretched.npz": field_npz(spacing=npy(np.array([1e-9, 1.0, 1.0]))),
    "nospacing.npy": npy(BALL.values),
    "pickled.npy": HOSTILE,
    "cut.npy": npy(BALL.values)[:-9],
    "header.npy": b"\x93NUMPY\x01\x00\xff\xff{'descr':",
    "code.npy": npy_header("__import__('os').getpid()"),
    "version.npy": b"\x93NUMPY\x09\x00" + bytes(100),
    # scans
    "garbage.nrrd": b"\x00\x01" * 500,
    "empty.nrrd": b"",
    "cut.nrrd": nrrd(data=bytes(100)),
    "huge.nrrd": nrrd((100000, 100000, 100000)),
    "one.nrrd": nrrd((1, 4, 4), bytes(128)),
    "five.nrrd": nrrd((2,) * 5, bytes(256), extra=""),
    "bomb.nrrd": nrrd((4, 4, 4), ZEROS, "gzip"),
    "notgzip.nrrd": nrrd((4, 4, 4), b"abc", "gzip"),
    "encoding.nrrd": nrrd((4, 4, 4), b"abc", "rot13"),
    "detached.nrrd": nrrd(extra="spacings: 1 1 1\ndata file: /etc/passwd\n"),
    "block.nrrd": nrrd(kind="block", extra="block size: 8\n"),
    "nosizes.nrrd": b"NRRD0004\ntype: double\ndimension: 3\nencoding: raw\n\n",
    "outside.nrrd": nrrd(data=np.ones(64).tobytes()),
    "garbage.nii": b"\x00\x01" * 500,
    "empty.nii.gz": b"",
    "notgzip.nii.gz": b"hello",
    "cut.nii": lambda: nifti()[:-5000],
    "cut.nii.gz": lambda: half(gzip.compress(nifti())),
    "turned.nii": lambda: nifti(affine=turned()),
    "huge.nii": lambda: nifti(shape=(32000, 32000, 32000)),
    "hugezip.nii.gz": lambda: gzip.compress(nifti(shape=(32000, 32000, 32000))),
    "movie.nii": lambda: nifti(np.zeros((4, 4, 4, 5))),
    "empty.nii": lambda: nifti(np.zeros((4, 4, 4), np.int16)),
    # meshes
    "empty.ply": b"",
    "garbage.ply": b"\x00\xff" * 300,
    "cut.ply": mesh_bytes("ply")[:-60],
    "points.ply": ply(CUBE.vertices, []),
    "nan.ply": ply([("nan", 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 1, 2), (0, 2, 3)]),
    "index.ply": ply(CUBE.vertices, [(0, 1, 77)]),
    "claims.ply": ply(CUBE.vertices, CUBE.faces, 10**15),
    "claimsbinary.ply": mesh_bytes("ply").replace(b"element face 12", b"element face 4000000000"),
    "sheet.ply": ply(SHEET, [(0, 1, 2), (0, 2, 3)]),
    "flat.ply": ply(SHEET * (1, 1, 0), [(0, 1, 2), (0, 2, 3)]),
    "onepoint.ply": ply([(0, 0, 0)] * 3, [(0, 1, 2)]),
    "garbage.obj": b"\xff\xfe\x00" * 99,
    "index.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
    "nofaces.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\n",
    "words.obj": b"v zero one two\nf a b c\n",
    "cut.stl": mesh_bytes("stl")[:-30],
    "claims.stl": bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(50),
    "garbage.stl": b"solid nothing",
    "garbage.off": b"OFF\nnot numbers\n",
    "claims.off": b"OFF\n999999999999 5 0\n0 0 0\n",
    "negative.off": b"OFF\n-3 -5 0\n0 0 0\n",
    "garbage.glb": b"glTF" + bytes(30),
    "claims.glb": b"glTF" + struct.pack("<4I", 2, 2**31, 2**31, 0x4E4F534A) + b"{}",
    "cut.glb": mesh_bytes("glb")[:-100],
    # neither
    "unknown.xyz": b"1 2 3",
    "noending": b"1 2 3",
}


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The first mesh query compiles a kernel; that second is not the file's fault."""
    MeshShape(vertices=CUBE.vertices, faces=CUBE.faces).distance(np.zeros((1, 3)))


@pytest.mark.parametrize("name", FILES)
def test_broken_file(name, tmp_path):
    content = FILES[name]
    path = tmp_path / name
    path.write_bytes(content() if callable(content) else content)
    start = time.perf_counter()
    with pytest.raises(BadInput) as caught:
        load_shape(path)
    assert time.perf_counter() - start < PATIENCE
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    for name in ("none.ply", "none.npz"):
        with pytest.raises(BadInput, match=name):
            load_shape(tmp_path / name)
        (tmp_path / name).mkdir()
        with pytest.raises(BadInput, match="folder"):
            load_shape(tmp_path / name)
    with pytest.raises(BadInput, match="no such file"):
        load_shape("a\0b.ply")


def test_options_are_checked(tmp_path):
    BALL.save(tmp_path / "a.npz")
    (tmp_path / "a.ply").write_bytes(mesh_bytes("ply"))
    with pytest.raises(BadInput, match="'level'"):
        load_shape(tmp_path / "a.npz", levle=1)
    with pytest.raises(BadInput, match="spacing"):
        load_shape(tmp_path / "a.ply", spacing=1)
    for wrong in (
        {"spacing": -1},
        {"origin": 3},
        {"level": "x"},
        {"level": 1, "label": 2},
        {"level": 1e9},
        {"spacing": (1, 2)},
        {"spacing": "thin"},
    ):
        with pytest.raises(BadInput, match="a.npz"):
            load_shape(tmp_path / "a.npz", **wrong)


def test_write_failures_are_named(tmp_path):
    with pytest.raises(BadInput, match="nowhere"):
        BALL.save(tmp_path / "nowhere" / "a.npz")
    with pytest.raises(BadInput, match=r"\.npz"):
        BALL.save(tmp_path / "a.txt")
    with pytest.raises(BadInput, match="nowhere"):
        MeshShape(vertices=CUBE.vertices, faces=CUBE.faces).save(tmp_path / "nowhere" / "a.ply")
