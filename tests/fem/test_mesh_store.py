"""The first mesh of a surface is kept, and a damaged one is made again."""

from importlib.util import find_spec

import numpy as np
import pytest

import pliant as pl
from pliant.fem.bodies import mesh_store
from pliant.fem.bodies.mesh_store import kept_mesh


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path))
    return tmp_path / "meshes"


class Mesher:
    """A mesh that is another every time."""

    def __init__(self):
        self.runs = 0

    def __call__(self, size):
        self.runs += 1
        return np.full((4, 3), self.runs * size), np.array([[0, 1, 2, 3]])


def test_the_same_surface_has_the_same_mesh():
    make = Mesher()
    first, again = (kept_mesh(make, "v1", size=2.0) for _ in range(2))
    assert make.runs == 1
    assert np.array_equal(first[0], again[0])
    kept_mesh(make, "v1", size=3.0)
    kept_mesh(make, "v2", size=2.0)
    assert make.runs == 3


def test_a_damaged_mesh_is_made_again(own_folder):
    make = Mesher()
    kept_mesh(make, "v1", size=2.0)
    (file,) = own_folder.glob("*.npz")
    for bad in (b"", file.read_bytes()[:-40], b"PK\x03\x04"):
        file.write_bytes(bad)
        kept_mesh(make, "v1", size=2.0)
    assert make.runs == 4
    np.savez(file, nodes=np.zeros((3, 3)), cells=np.array([[0, 1, 2, 7]]))  # no such node
    kept_mesh(make, "v1", size=2.0)
    assert make.runs == 5


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path / "file"))
    assert len(kept_mesh(Mesher(), "v1", size=2.0)[1]) == 1


def test_the_oldest_go_first(monkeypatch, own_folder):
    monkeypatch.setattr(mesh_store, "MOST", 3)
    make = Mesher()
    for size in range(6):
        kept_mesh(make, "v1", size=float(size))
    assert len(list(own_folder.glob("*.npz"))) == 3


@pytest.mark.skipif(find_spec("pytetwild") is None, reason="needs fTetWild")
def test_a_body_made_twice_is_the_same_to_the_bit():
    ball = pl.shapes.sphere(radius=0.1)
    one, two = (pl.TetBody(ball, edge_length=0.08) for _ in range(2))
    assert np.array_equal(one.nodes, two.nodes)
    assert np.array_equal(one.cells, two.cells)
