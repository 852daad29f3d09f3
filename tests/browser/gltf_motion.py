"""What an animated glTF file must hold: the motion of the session it was exported from."""

import json
import struct

import numpy as np
import pytest


def check_motion(data: bytes, session) -> None:
    """A binary glTF whose animation moves the vertices as far as the frames of the session."""
    magic, version, length, count, kind = struct.unpack_from("<4sIII4s", data)
    assert (magic, version, length, kind) == (b"glTF", 2, len(data), b"JSON")
    document = json.loads(data[20 : 20 + count])
    size, kind = struct.unpack_from("<I4s", data, 20 + count)
    assert (kind, size) == (b"BIN\0", len(data) - 28 - count)

    def values(index):
        accessor = document["accessors"][index]
        start = 28 + count + document["bufferViews"][accessor["bufferView"]]["byteOffset"]
        width = {"SCALAR": 1, "VEC3": 3}[accessor["type"]]
        return np.frombuffer(data, np.float32, accessor["count"] * width, start).reshape(-1, width)

    primitive = document["meshes"][0]["primitives"][0]
    sampler = document["animations"][0]["samplers"][0]
    frames = [session.history[i] for i in range(len(session.history))]
    assert values(sampler["input"])[:, 0] == pytest.approx([f.t - frames[0].t for f in frames])
    moved = [np.abs(values(t["POSITION"])).max() for t in primitive["targets"]]
    at = session.body.surface.points.matrix
    known = [np.abs(at @ (f.u - frames[0].u)).max() for f in frames[1:]]
    assert moved == pytest.approx(known, rel=1e-5, abs=1e-7)
    assert max(moved) > 0.01
