"""Recordings that are damaged or lie are refused in a sentence that names the file."""

import io
import json
import struct
import zlib

import numpy as np
import pytest

import pliant as pl
from pliant.observe.files import load_observations, save_observations
from recordings import ply_text


def refused(folder, match, **options):
    with pytest.raises(pl.BadInput, match=match) as error:
        load_observations(folder, **options)
    assert str(folder) in str(error.value)


def test_nothing_there(tmp_path):
    refused(tmp_path / "none", "no such folder")
    refused(tmp_path, "holds no frames")
    (tmp_path / "x").write_text("")
    refused(tmp_path / "x", "is a file")


def test_truncated_at_every_length(seen, tmp_path):
    """No cut of a frame is read as if nothing had happened, and none raises anything else."""
    for layout, name in (
        ("npz", "frame_0001.npz"),
        ("ply", "frame_0001.ply"),
        ("depth", "depth/camera_00/00001.png"),
    ):
        folder = tmp_path / layout
        save_observations(seen, folder, layout)
        path = folder / name
        data = path.read_bytes()
        # after the last chunk's name a PNG is whole but for a checksum of nothing
        end = len(data) - (4 if layout == "depth" else 0)
        for cut in {*range(0, end, max(1, end // 25)), end - 1}:
            path.write_bytes(data[:cut])
            with pytest.raises(pl.BadInput, match=r"0001\.(npz|ply|png)"):
                load_observations(folder)


def test_headers_that_promise_too_much(tmp_path):
    head = (
        "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty double x\n"
        "property double y\nproperty double z\nend_header\n"
    )
    (tmp_path / "a.ply").write_text(head.format(10**7))
    refused(tmp_path, "cut off: the header promises 10000000")
    (tmp_path / "a.ply").write_text(head.format(10**15))
    refused(tmp_path, "more than")
    (tmp_path / "a.ply").write_text(head.format(3 * 10**6).replace("binary_little_endian", "ascii"))
    refused(tmp_path, "too many for its")

    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)}
    )
    import zipfile

    (tmp_path / "a.ply").unlink()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("points.npy", stream.getvalue())
    refused(tmp_path, "at most")


def png(width, height, bits, colour) -> bytes:
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("image", "match"),
    [
        (png(100_000, 100_000, 16, 0), "at most"),
        (png(12, 9, 8, 2), "16-bit grey"),
        (png(13, 9, 16, 0), "another resolution"),
        (png(12, 9, 16, 0), "damaged"),
        (b"GIF89a", "not a PNG"),
        (b"", "empty"),
    ],
)
def test_images_that_are_no_depth(seen, tmp_path, image, match):
    save_observations(seen, tmp_path, "depth")
    (tmp_path / "depth" / "camera_00" / "00001.png").write_bytes(image)
    refused(tmp_path, match)


def test_numbers_that_are_none(seen, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "0.ply").write_text(ply_text([[0, 0, 0], [np.nan, 0, 0]]))
    refused(tmp_path / "p", "point 1 of 2 is not finite")
    (tmp_path / "p" / "0.ply").write_text(ply_text([[0, 0, 0]]).replace("0 0 0", "0 zero 0"))
    refused(tmp_path / "p", "point 0 of 1 cannot be read")
    folder = tmp_path / "n"
    save_observations(seen, folder)
    f = seen.frames[1]
    np.savez(folder / "frame_0001.npz", points=f.points, camera=f.camera, pixel=f.pixel + 1000,
             depth=f.depth)  # fmt: skip
    refused(folder, "outside the image")
    np.savez(folder / "frame_0001.npz", points=f.points, camera=f.camera, pixel=f.pixel,
             depth=-f.depth)  # fmt: skip
    refused(folder, r"depth\[0\]")
    np.savez(folder / "frame_0001.npz", points=np.array([[object()]], object))
    refused(folder, "pickled")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"times": [0.1]}, "1 times for 3 frames"),
        ({"times": [0.1, 0.3, 0.2]}, "not later"),
        ({"times": [-0.1, 0.3, 0.4]}, "before the start"),
        ({"times": [0.1, "x", 0.4]}, "not a number"),
        ({"noise": -1.0}, "noise must be a positive"),
        ({"units": "furlong"}, "are not known"),
        ({"units": ["m"]}, "are not known"),
        ({"layout": "xyz"}, "is not one of"),
        ({"layout": "depth"}, "promises the layout"),
        ({"cameras": [{}]}, r"cameras\[0\]"),
        ({"cameras": [{"extrinsic": [0.0] * 16, "intrinsic": {}}]}, r"cameras\[0\]"),
    ],
)
def test_records_that_cannot_be(seen, tmp_path, change, match):
    save_observations(seen, tmp_path)
    path = tmp_path / "observations.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    refused(tmp_path, match)


def test_text_that_is_no_record(seen, tmp_path):
    save_observations(seen, tmp_path)
    for text in ("{", "[]", "[" * 100_000, "\xff"):
        (tmp_path / "observations.json").write_bytes(text.encode("latin-1"))
        refused(tmp_path, "observations.json")
