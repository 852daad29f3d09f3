"""Bad files of fields and scans: NumPy's arrays, NRRD, NIfTI."""

import gzip
import io
import struct
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from hostile_case import TAKEN, Case
from hostile_meshes import CUTS, cut, shaped


def field_cases() -> Iterator[Case]:
    """All of them."""
    yield from _fields()
    yield from _scans()


def npy(array: Any) -> bytes:
    """In NumPy's format."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    """An archive; bytes are members as they are."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, value in arrays.items():
            archive.writestr(f"{name}.npy", value if isinstance(value, bytes) else npy(value))
    return stream.getvalue()


def ball_field(n: int = 9) -> np.ndarray:
    """Distances to a ball."""
    axis = np.linspace(-1.0, 1.0, n)
    return np.linalg.norm(np.stack(np.meshgrid(axis, axis, axis, indexing="ij")), axis=0) - 0.6


def header(shape: Any, descr: str = "<f8") -> bytes:
    """Of an array in NumPy's format, without its numbers."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _fields() -> Iterator[Case]:
    good = {"values": ball_field(), "origin": np.zeros(3), "spacing": np.array(0.25)}
    yield shaped("field.npz", npz(**good), TAKEN)
    whole = npz(**good)
    for k in range(1, CUTS):
        yield shaped("cut.npz", cut(whole, k), title=f"at {k}/{CUTS}")
    for name in ("origin", "spacing"):
        for bad in (np.nan, np.inf, 1e308, -1e308, 1e200):
            value = np.full(3 if name == "origin" else (), bad)
            yield shaped("a.npz", npz(**good | {name: value}), title=f"{name} {bad:g}")
        for bad in ("text", None, [1, 2], {}, 1j, [[1.0]] * 9, []):
            array = np.array(bad, dtype=object if bad is None or bad == {} else None)
            yield shaped("a.npz", npz(**good | {name: array}), title=f"{name} {bad!r}")
    for bad in (0.0, -1.0, 5e-324, 1e-300):
        yield shaped("a.npz", npz(**good | {"spacing": np.array(bad)}), title=f"spacing {bad:g}")
    for bad in (np.nan, np.inf, -np.inf, 1e308, -1e308):
        values = ball_field()
        values[3, 3, 3] = bad
        yield shaped("a.npz", npz(**good | {"values": values}), title=f"a value {bad:g}")
    for title, values in {
        "outside": np.ones((5, 5, 5)), "a line": np.ones(9), "four axes": -np.ones((3,) * 4),
        "nothing": np.zeros((0, 3, 3)), "one layer": -np.ones((1, 5, 5)), "words": np.full(3, "a"),
        "complex": ball_field() * 1j, "a number": np.float64(-1.0), "dates": np.full((3, 3, 3),
        np.datetime64("2020-01-01")), "records": np.zeros((3, 3, 3), [("a", "f8")]),
        "objects": np.full((3, 3, 3), None),
    }.items():  # fmt: skip
        yield shaped("a.npz", npz(**good | {"values": values}), title=title)
    for shape in ((10**6,) * 3, (-1, 3, 3), (2**62, 2, 2), (400, 400, 400), (3.5, 3, 3), "(1,)*9"):
        lying = npz(**good | {"values": header(shape) + bytes(80)})
        yield shaped("a.npz", lying, title=f"shape {shape}")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", header((511, 511, 511), "<f4") + bytes(2**27))
    yield shaped("bomb.npz", bomb.getvalue(), title="expands a thousandfold")
    for descr in ("|O", "<U9", "<c16", "<M8[s]", "x", "<f3"):
        yield shaped("a.npy", header((3, 3, 3), descr) + bytes(999), title=f"numbers as {descr}")
    yield shaped("a.npy", npy(ball_field()), title="no spacing")
    for name, data in {"zeros": bytes(999), "one byte": b"P", "text": b"hello" * 99}.items():
        yield shaped("a.npz", data, title=name)
        yield shaped("a.npy", data, title=name)


def nrrd(data: bytes, **fields: Any) -> bytes:
    """A volume of 9^3 numbers."""
    head = {"type": "double", "dimension": "3", "sizes": "9 9 9", "encoding": "raw",
            "endian": "little", "spacings": "0.25 0.25 0.25"} | fields  # fmt: skip
    rows = [f"{k.replace('_', ' ')}: {v}" for k, v in head.items() if v is not None]
    return "\n".join(["NRRD0004", *rows, "", ""]).encode() + data


@cache
def nifti() -> bytes:
    """A ball of bits."""
    import nibabel

    image = nibabel.Nifti1Image((ball_field() < 0.0).astype(np.int16), np.eye(4))
    return image.to_bytes()


def _scans() -> Iterator[Case]:
    data = ball_field().tobytes(order="F")
    yield shaped("ball.nrrd", nrrd(data), TAKEN)
    whole = nrrd(data)
    for k in range(1, CUTS):
        yield shaped("cut.nrrd", cut(whole, k), title=f"at {k}/{CUTS}")
    wrong: dict[str, list[Any]] = {
        "sizes": [
            "9 9",
            "9 9 9 9",
            "-9 9 9",
            "10000000 1000000 1000000",
            "9 9 x",
            "0 9 9",
            "",
            "nan 9 9",
            "9 9 " + "9" * 5000,
            "1 9 9",
            "10 9 9",
        ],
        "dimension": ["2", "0", "-3", "x", "100000", "9" * 5000, None],
        "type": ["block", "quaternion", "", "float", None],
        "encoding": ["gzip", "bz2", "rot13", "hex", "", None],
        "spacings": ["nan nan nan", "0 0 0", "-1 1 1", "1e308 1 1", "1 1", "x y z", "1e-300 1 1"],
        "line_skip": ["1000000000", "-5", "x", "9" * 5000, "100000"],
        "byte_skip": ["1000000000", "-2", "x", "9" * 5000],
        "data_file": ["/etc/passwd", "LIST", "/dev/zero", "other.raw"],
        "endian": ["middle", "big"],
        "space_directions": [
            "(1,0,0) (0,1,0)",
            "(nan,0,0) (0,1,0) (0,0,1)",
            "(1,1,0) (0,1,0) (0,0,1)",
            "(0,0,0) (0,0,0) (0,0,0)",
            "x",
        ],
    }
    for key, values in wrong.items():
        for value in values:
            extra: dict[str, Any] = {key: value}
            if key == "space_directions":
                extra |= {"spacings": None, "space": "left-posterior-superior"}
            # big-endian distances are nonsense, but some of them may be finite and negative
            if (key, value) != ("endian", "big"):
                shown = str(value)[:20]
                yield shaped("a.nrrd", nrrd(data, **extra), title=f"{key} {shown}")
    yield shaped("bomb.nrrd", lambda: nrrd(gzip.compress(bytes(2**28)), encoding="gzip"),
                 title="expands a thousandfold")  # fmt: skip
    yield shaped("ball.nii", nifti, TAKEN)
    for k in range(1, CUTS - 1):
        yield shaped("cut.nii", lambda k=k: cut(nifti(), k), title=f"at {k}/{CUTS}")
        zipped = lambda k=k: cut(gzip.compress(nifti(), mtime=0), k)  # noqa: E731
        yield shaped("cut.nii.gz", zipped, title=f"at {k}/{CUTS}")
    for at, form, value in (
        (40, "<8h", (3, 32000, 32000, 32000, 1, 1, 1, 1)),
        (40, "<8h", (7, 9, 9, 9, 9, 9, 9, 9)),
        (40, "<8h", (3, -9, 9, 9, 1, 1, 1, 1)),
        (70, "<h", (1792,)),
        (70, "<h", (0,)),
        (108, "<f", (1e30,)),
        (108, "<f", (np.nan,)),
        (280, "<4f", (np.nan,) * 4),
        (344, "4s", (b"what",)),
    ):

        def bent(at=at, form=form, value=value) -> bytes:
            found = bytearray(nifti())
            found[at : at + struct.calcsize(form)] = struct.pack(form, *value)
            return bytes(found)

        yield shaped("a.nii", bent, title=f"byte {at} {value}")
