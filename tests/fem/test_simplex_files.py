"""Volume meshes on disk: ours come back as they were, broken ones are refused."""

import time

import numpy as np
import pytest
import trimesh

from pliant.core.errors import BadInput
from pliant.fem.bodies.simplex_files import SIMPLEX_SUFFIXES, load_simplices, save_simplices
from pliant.fem.bodies.tet_body import TetBody as AnyTetBody
from simplex_bodies import NODES, TETS, require_sound
from waiting import PATIENCE


def TetBody(*source):  # noqa: N802
    """Linear cells; quadratic ones have tests of their own."""
    return AnyTetBody(*source, order=1)


@pytest.mark.parametrize("suffix", SIMPLEX_SUFFIXES)
def test_files_round_trip(suffix, tmp_path, brick, disc):
    for body in (brick, disc):
        path = tmp_path / f"body{suffix}"
        save_simplices(path, body.nodes, body.cells)
        points, cells = load_simplices(path)
        assert np.abs(points[:, : body.dim] - body.nodes).max() < 1e-15
        assert np.array_equal(cells, body.cells)
        again = TetBody(path)
        require_sound(again)
        assert again.dim == body.dim
        assert again.volume == pytest.approx(body.volume, rel=1e-12)
        assert len(again.surface.facets) == len(body.surface.facets)


def test_other_files(tmp_path, ball):
    solid = trimesh.creation.box((1.0, 1.0, 1.0))
    solid.export(tmp_path / "box.stl")
    save_simplices(tmp_path / "box.vtu", solid.vertices, solid.faces)
    for name in ("box.stl", "box.vtu"):
        body = TetBody(str(tmp_path / name), 0.6)
        require_sound(body)
        assert body.volume == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(BadInput, match="cannot write"):
        save_simplices(tmp_path / "ball.xyz", ball.nodes, ball.cells)
    with pytest.raises(BadInput, match="cannot be written"):
        save_simplices(tmp_path / "nowhere" / "ball.vtk", ball.nodes, ball.cells)


def _truncated(part):
    return lambda path: path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])


def _with_cells(nodes, kind, cells):
    import meshio

    def write(path):
        form = {".msh": "gmsh", ".mesh": "medit"}.get(path.suffix)
        meshio.write_points_cells(path, nodes, [(kind, np.array(cells))], file_format=form)

    return write


def _huge_tag(path):
    data = bytearray(path.read_bytes())
    at = data.index(b"$Nodes\n") + 7 + 4 * 8 + 3 * 4 + 8  # the first tag of the first block
    data[at + 4] = 1
    path.write_bytes(bytes(data))


MEDIT = "MeshVersionFormatted 2\nDimension 3\nVertices\n4\n"
BAD_FILES = {
    "missing.msh": lambda path: path.unlink(),
    "folder.vtk": lambda path: (path.unlink(), path.mkdir()),
    "empty.msh": lambda path: path.write_bytes(b""),
    "empty.vtu": lambda path: path.write_bytes(b""),
    "half.msh": _truncated(0.5),
    "half.vtu": _truncated(0.5),
    "half.vtk": _truncated(0.5),
    "half.mesh": _truncated(0.5),
    "head.msh": _truncated(0.02),
    "noise.msh": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "noise.vtu": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "noise.vtk": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "noise.mesh": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "tag.msh": _huge_tag,
    "hexahedra.vtk": _with_cells(np.eye(8, 3), "hexahedron", [list(range(8))]),
    "points.vtk": _with_cells(np.eye(3), "vertex", [[0], [1]]),
    "lines.mesh": _with_cells(NODES, "line", [[0, 1]]),
    "index.vtk": _with_cells(NODES, "tetra", [[0, 1, 2, 3], [0, 1, 2, 77]]),
    "nan.vtu": _with_cells(NODES * np.nan, "tetra", TETS),
    "flat.msh": _with_cells(NODES * [1, 1, 0], "tetra", TETS),
    "twice.vtk": _with_cells(NODES, "tetra", [[0, 1, 2, 3]] * 2),
    "sheet.vtk": _with_cells(NODES, "triangle", TETS[:, :3]),
    "words.mesh": lambda path: path.write_text(MEDIT + "a b c d\n" * 4),
    "billions.mesh": lambda path: path.write_text(MEDIT.replace("4\n", "4000000000000\n")),
    "soup.ply": lambda path: path.write_text("ply\nnot really"),
    "body.docx": lambda path: None,
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(name, tmp_path, capfd):
    path = tmp_path / name
    good = tmp_path / f"good{path.suffix if path.suffix in SIMPLEX_SUFFIXES else '.vtk'}"
    save_simplices(good, NODES, TETS)
    path.write_bytes(good.read_bytes())
    BAD_FILES[name](path)
    start = time.perf_counter()
    with pytest.raises(BadInput, match=name) as caught:
        TetBody(path)
    assert time.perf_counter() - start < PATIENCE
    assert "\n" not in str(caught.value)
    if name in ("index.vtk", "flat.msh", "twice.vtk"):
        assert "cell" in str(caught.value)
    assert capfd.readouterr().out == ""
