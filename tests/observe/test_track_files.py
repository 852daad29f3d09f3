"""Files of tracked points: what is read, and what is said of files that are wrong."""

import os
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from pliant.observe.c3d import DEC, INTEL, MIPS, read_c3d
from pliant.observe.track_files import are_tracks, load_tracks, save_tracks

DATA = Path(
    os.environ.get("PLIANT_REAL_DATA", Path(__file__).parents[3] / "shared" / "data" / "real")
)


# --- CSV


def test_csv_with_gaps_units_and_other_marks(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("# a comment\ntime [ms];tip 1_x;tip 1_y;tip 1_z\n0;1;2;3\n10;;;\n20;4;nan;6\n")
    seen = load_tracks(path, units="mm")
    assert seen.names == ("tip 1",)
    assert seen.times == pytest.approx([0.0, 0.01, 0.02])
    assert seen.positions[0, 0] == pytest.approx([1e-3, 2e-3, 3e-3])
    assert seen.present[:, 0].tolist() == [True, False, False]  # half a position is none


def test_units_in_the_names_and_by_the_body(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,a_x_mm,a_y_mm,a_z_mm,b_x_mm,b_y_mm,b_z_mm\n0,1,2,3,,,\n")
    seen = load_tracks(path)  # b was never seen
    assert seen.names == ("a",)
    assert seen.positions[0, 0] == pytest.approx([1e-3, 2e-3, 3e-3])
    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(0.1, 0.1, 0.1)), 0.05)
    path.write_text("t,a_x,a_y,a_z,b_x,b_y,b_z\n0,1,2,3,100,80,-40\n")
    assert load_tracks(path, scene=pl.Scene(body)).positions[0, 1, 0] == pytest.approx(0.1)


def test_saved_tracks_come_back_to_the_bit(tmp_path):
    x = np.random.default_rng(0).standard_normal((4, 2, 3))
    x[1, 0] = np.nan
    save_tracks(pl.TrackedPoints(0.1 * np.arange(4), x, names=("a", "b")), tmp_path / "a.csv")
    seen = load_tracks(tmp_path / "a.csv")
    assert np.array_equal(seen.positions, x, equal_nan=True)
    assert seen.names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("t,a_x,a_y,a_z\n", "line of names"),
        ("x,a_x,a_y,a_z\n0,1,2,3\n", "first column"),
        ("t,a,b,c\n0,1,2,3\n", "column 'a'"),
        ("t,a_x,a_y,a_z,b_x\n0,1,2,3,4\n", "'b' lacks"),
        ("t,a_x,a_x,a_z\n0,1,2,3\n", "two columns"),
        ("t,a_x,a_y,a_z\n0,1,2\n", "frame 1 has 3"),
        ("t,a_x,a_y,a_z\n0,1,2,three\n", "a_z: 'three'"),
        ("t,a_x,a_y,a_z\n1,1,2,3\n1,1,2,3\n", "frame 2"),
        ("t,a_x,a_y,a_z\n0,,,\n", "ever seen"),
        ("t,a_x [mm],a_y [m],a_z\n0,1,2,3\n", "one unit"),
    ],
)
def test_wrong_tables_are_one_sentence(tmp_path, text, match):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(pl.BadInput, match=match):
        load_tracks(path)


# --- C3D


def c3d(machine, scale, points, analog=0, rate=50.0, names=("A", "B")):
    """Bytes of a file; points: (frames, points, 4)."""
    order = ">" if machine == MIPS else "<"

    def number(x):
        if machine == DEC:  # halves swapped, four times as large
            raw = struct.pack("<f", 4.0 * x)
            return raw[2:] + raw[:2]
        return struct.pack(order + "f", x)

    def group(k, name):
        return struct.pack("bb", len(name), -k) + name + struct.pack(order + "H", 3) + b"\0"

    def parameter(k, name, kind, sizes, data):
        body = struct.pack("bB", kind, len(sizes)) + bytes(sizes) + data + b"\0"
        return (
            struct.pack("bb", len(name), k) + name + struct.pack(order + "H", 2 + len(body)) + body
        )

    records = group(1, b"POINT")
    records += parameter(1, b"UNITS", -1, [2], b"mm")
    records += parameter(1, b"RATE", 4, [], number(rate))
    labels = b"".join(n.encode().ljust(4) for n in names)
    records += parameter(1, b"LABELS", -1, [4, len(names)], labels)
    frames, count = points.shape[:2]
    head = bytearray(512)
    head[:2] = bytes([2, 80])
    struct.pack_into(order + "HHHHH", head, 2, count, analog, 1, frames, 0)
    head[12:16] = number(scale)
    struct.pack_into(order + "HH", head, 16, 3, 0)
    head[20:24] = number(rate)
    middle = (bytes([1, 80, 1, machine]) + records + b"\0\0").ljust(512, b"\0")
    data = b""
    for row in points:
        for p in row:
            if scale < 0.0:
                data += b"".join(number(float(x)) for x in p)
            else:
                data += struct.pack(order + "3h", *(round(x / scale) for x in p[:3]))
                data += struct.pack(order + "h", int(p[3]))
        data += (number(7.0) if scale < 0.0 else struct.pack(order + "h", 7)) * analog
    return bytes(head) + middle + data


@pytest.mark.parametrize("machine", [INTEL, DEC, MIPS])
@pytest.mark.parametrize("scale", [-1.0, 0.5])
def test_c3d_of_every_machine(tmp_path, machine, scale):
    x = np.zeros((3, 2, 4))
    x[..., :3] = 0.5 * np.arange(18).reshape(3, 2, 3) - 4.0
    x[1, 1, 3] = -1.0  # not seen
    path = tmp_path / "a.c3d"
    path.write_bytes(c3d(machine, scale, x, analog=3))
    found = read_c3d(path)
    assert found.names == ("A", "B")
    assert found.units == "mm"
    assert found.times == pytest.approx([0.0, 0.02, 0.04])
    expected = x[..., :3].copy()
    expected[1, 1] = np.nan
    np.testing.assert_allclose(found.positions, expected)
    assert load_tracks(path).positions[2, 1, 2] == pytest.approx(4.5e-3)


def test_damaged_c3d_is_one_sentence(tmp_path):
    good, path = c3d(INTEL, -1.0, np.ones((3, 2, 4))), tmp_path / "a.c3d"
    rng = np.random.default_rng(1)
    wrong = [b"", good[:600], b"x" * 2000, good[:-40], good[:2] + b"\xff\xff" + good[4:]]
    wrong += [bytes(rng.integers(0, 256, 1500, dtype=np.uint8)) for _ in range(5)]
    for _ in range(200):  # a byte here and there
        at = int(rng.integers(0, 700))
        wrong.append(good[:at] + bytes([int(rng.integers(256))]) + good[at + 1 :])
    failures = 0
    for data in wrong:
        path.write_bytes(data)
        try:
            read_c3d(path)
        except pl.BadInput:
            failures += 1
    assert failures > 10


# --- tracks.toml


def described(tmp_path, text, table="t,a_x,a_y,a_z,b_x,b_y,b_z,c_x,c_y,c_z\n"):
    rows = "".join(f"{0.1 * k},1,0,{k},0,1,{k},0,0,{k}\n" for k in range(4))
    (tmp_path / "a.csv").write_text(table + rows)
    (tmp_path / "tracks.toml").write_text(text)
    return load_tracks(tmp_path)


def test_a_description_says_where_points_are(tmp_path):
    seen = described(
        tmp_path,
        'file = "a.csv"\nunits = "cm"\nsigma = 1e-3\nbegin = 0.1\nend = 0.2\n'
        "[points.b]\nat = [0, 0, 1]\nsigma = 2e-3\n[points.a]\nat = [0.5, 0, 0]\n"
        "offset = [0, 0, 0.1]\n",
    )
    assert are_tracks(tmp_path)
    assert seen.names == ("b", "a")
    assert seen.times == pytest.approx([0.0, 0.1])
    assert seen.positions[0, 1] == pytest.approx([0.01, 0.0, 0.01])
    assert seen.sigma == pytest.approx([2e-3, 1e-3])
    assert seen.at == pytest.approx(np.array([[0, 0, 1], [0.5, 0, 0]]))
    assert seen.offset == pytest.approx(np.array([[0, 0, 0], [0, 0, 0.1]]))


def test_alignment_turns_the_recording_onto_the_places(tmp_path):
    """At the first frame x, y axes of the recording are y, -x of the scene, 5 m along z."""
    seen = described(
        tmp_path,
        'file = "a.csv"\nunits = "m"\n[align]\nend = 0.05\n'
        "[points.a]\nat = [0, 1, 5]\n[points.b]\nat = [-1, 0, 5]\n"
        "[points.c]\nat = [0, 0, 5]\nuse = false\n",
    )
    assert seen.names == ("a", "b")
    assert seen.positions[2, 0] == pytest.approx([0, 1, 7])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("sigma = 1", "must name its file"),
        ('file = "a.csv"\nsize = 3', "size is unknown"),
        ('file = "a.csv"\n[points.z]\nat = [0,0,0]', "no such point; it has a, b, c"),
        ('file = "a.csv"\n[points.a]\nat = [0,0]', "3 numbers"),
        ('file = "a.csv"\n[points.a]\nat = [0,0,0]\n[points.b]\n', r"points\.b\] lacks"),
        ('file = "a.csv"\nsigma = -1', "positive length"),
        ('file = "a.csv"\n[align]\n', "needs `at`"),
        ('file = "b.csv"', "no such file"),
        ('file = "a.csv"\nunits = "feet"', "feet"),
        ("file = ", "not TOML"),
    ],
)
def test_wrong_descriptions_are_one_sentence(tmp_path, text, match):
    with pytest.raises(pl.BadInput, match=match):
        described(tmp_path, text)


# --- a real recording


@pytest.mark.parametrize("name", ["gravity", "load52"])
def test_a_real_recording(name):
    """Six markers, 100 Hz: the C3D file and the table made of it agree to the table's digits."""
    path = DATA / f"beam_{name}_V2_a.c3d"
    if not path.is_file():
        warnings.warn(f"NOT TESTED: {path} is missing (PLIANT_REAL_DATA).", stacklevel=1)
        pytest.skip(f"{path} is missing")
    seen, table = load_tracks(path), load_tracks(DATA / f"beam_{name}_V2_a_lab.csv")
    assert seen.names[0] == "Tip - 1"
    assert table.names == ("tip1", "tip2", "tip3", "base1", "base2", "base3")
    assert np.diff(seen.times) == pytest.approx(np.full(len(seen.times) - 1, 0.01))
    assert np.abs(seen.positions - table.positions).max() < 5.1e-8
    assert seen.present.all()
