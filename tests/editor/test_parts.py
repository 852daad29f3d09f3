"""The editor's parts without a page: files, counts, presets, desk, history, pull."""

import asyncio
import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing import cell_count
from pliant.app.describing.cell_count import grid_cells, spacing_for, tet_cells
from pliant.app.editor.context import Context
from pliant.app.editor.desk import Desk
from pliant.app.editor.folder import check_upload, inside, open_inside, plain_name
from pliant.app.editor.history import Frame, History
from pliant.app.editor.panels.material import pulled
from pliant.app.editor.picking import first_hit
from pliant.app.editor.presets import PRESETS
from pliant.app.editor.pull import grip
from pliant.app.editor.requests import is_loopback, names_of
from pliant.app.editor.section import cell_edges, section
from pliant.core.errors import BadInput
from pliant.fem.laws import LAWS


@pytest.mark.parametrize("name", ["a.toml", "My scene-2.toml", "x.y.toml"])
def test_plain_names(name):
    assert plain_name(name, suffixes=(".toml",)) == name


@pytest.mark.parametrize(
    "name", ["../a.toml", "a/b.toml", "/a.toml", ".a.toml", "a.txt", "", "a\x00.toml", "a..toml",
             "ä.toml", "x" * 200 + ".toml", "..", "a\\b.toml", "-rf.toml"],
)  # fmt: skip
def test_other_names_are_refused(name):
    with pytest.raises(BadInput):
        plain_name(name, suffixes=(".toml",))


def test_uploaded_names_are_made_plain():
    assert check_upload("/etc/../My body (1).PLY", 10) == "My_body__1_.PLY"
    assert check_upload("C:\\a\\b.stl", 10) == "b.stl"
    for name, size in (("a.toml", 1), ("a.ply", 65 * 1024**2), ("a.ply", 0), ("", 1), ("ply", 1)):
        with pytest.raises(BadInput):
            check_upload(name, size)


def test_links_out_of_the_folder_are_refused(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "out.toml").write_text("x")
    (folder / "a.toml").symlink_to(tmp_path / "out.toml")
    with pytest.raises(BadInput, match="link"):
        inside(folder, "a.toml")
    with pytest.raises(BadInput, match="link"):
        open_inside(folder, "../out.toml")
    linked = tmp_path / "linked"
    linked.symlink_to(folder)  # the folder itself may be reached through one
    (folder / "b.toml").write_text("y")
    stream, size = open_inside(linked, "b.toml")
    with stream:
        assert (stream.read(), size) == (b"y", 1)


def test_loopback_names():
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("192.168.1.2")
    assert not is_loopback("127.0.0.1.nip.io")
    assert names_of("127.0.0.1", 5) == {"127.0.0.1:5", "localhost:5", "[::1]:5"}
    assert names_of("10.0.0.7", 5) == {"10.0.0.7:5"}


SHAPES = [
    pl.shapes.torus(major=1.0, minor=0.35),
    pl.shapes.box(center=(0.0, 0.0, 0.0), size=(1.0, 0.5, 0.25)),
    pl.shapes.sphere(radius=0.37, center=(0.1, 0.2, 0.3)),
    pl.shapes.circle(radius=0.8),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_cell_count_is_that_of_the_body(shape):
    h = 0.125
    assert grid_cells(shape, h) == (len(pl.GridBody(shape, h).cells), True)


def test_cell_count_of_a_fine_grid_is_close(monkeypatch):
    monkeypatch.setattr(cell_count, "EXACT", 30_000)
    shape = SHAPES[0]
    cells, exact = grid_cells(shape, 0.05)
    assert not exact
    assert cells == pytest.approx(len(pl.GridBody(shape, 0.05).cells), rel=0.03)


def test_spacing_for_a_number_of_cells():
    shape = SHAPES[0]
    assert grid_cells(shape, spacing_for(shape, 3000))[0] == pytest.approx(3000, rel=0.15)


def test_tetrahedra_are_estimated():
    shape = pl.shapes.box(center=(0.0, 0.0, 0.0), size=(1.0, 1.0, 1.0))
    assert tet_cells(shape, 0.1) == pytest.approx(6.0 * math.sqrt(2.0) * 1000.0, rel=0.1)
    real = len(pl.TetBody(shape, edge_length=0.2).cells)
    assert 0.4 < tet_cells(shape, 0.2) / real < 2.5


def test_presets_are_materials_within_their_reported_range():
    assert {"Gelatin", "Silicone", "Foam", "Muscle", "Rubber"} == {n.split(",")[0].split()[0]
                                                                    for n in PRESETS}  # fmt: skip
    for preset in PRESETS.values():
        material = pl.Material(**preset.table())
        low, high = preset.reported
        assert low <= float(material.youngs_modulus) <= high
        assert len(preset.source) > 40


def test_history_stays_within_its_bound_and_keeps_both_ends():
    history = History(limit=100 * 12 * 10)
    for i in range(1000):
        history.append(Frame(i, 0.1 * i, np.full((10, 3), i, np.float32), {"tip": float(i)}))
    assert len(history) <= 100
    assert (history[0].step, history[-1].step) == (0, 999)
    t, tip = history.series("tip")
    assert np.all(np.diff(t) > 0.0)
    np.testing.assert_allclose(tip, 10.0 * t)
    history.cut_after(3)
    assert len(history) == 4


def test_desk_keeps_order_drops_replaced_orders_and_survives_errors():
    said, done = [], []
    desk = Desk(said.append)
    gate = threading.Event()
    desk.post(gate.wait)
    for i in range(5):
        desk.post(lambda i=i: done.append(("slider", i)), key="slider")
    desk.post(lambda: done.append("button"))

    def bad():
        raise BadInput("no")

    def broken():
        raise ZeroDivisionError("oops")

    desk.post(bad)
    desk.post(broken)
    desk.post(lambda: done.append("last"))
    desk.start()
    gate.set()
    assert desk.settle()
    assert done == [("slider", 4), "button", "last"]
    assert said == ["no", "ZeroDivisionError: oops"]
    desk.stop()
    desk.post(lambda: done.append("after"))
    assert "after" not in done


class Input:
    """As much of a viser input as the context uses: its value, and who is told about a change."""

    def __init__(self):
        self.value, self.told = None, []
        self.on_update = self.on_click = self.on_upload = self.told.append

    def by_person(self, value):
        self.value = value
        for tell in self.told:
            asyncio.run(tell(SimpleNamespace(target=self, client_id=1, client="page")))


@pytest.mark.parametrize("kind", ["on_change", "on_choice", "on_upload"])
def test_what_a_person_did_is_done_as_it_was_though_the_desk_is_busy(kind):
    """Pressing Reset, then Step, is not two steps; what a panel shows meanwhile changes nothing."""
    done: list[str] = []
    desk = Desk(done.append)
    context = Context(None, desk, None, None, None, None, None)
    first, second = Input(), Input()
    for handle in (first, second):
        getattr(context, kind)(handle, done.append)
    first.by_person("Reset")
    second.by_person("Step")
    first.value = second.value = "shown by another order"
    desk.start()
    assert desk.settle()
    assert done == ["Reset", "Step"]
    desk.stop()


def test_grip_pulls_with_its_stiffness_and_no_more():
    shape = pl.shapes.box(center=(1.0, 0.0, 0.0), size=(2.0, 0.5, 0.5))
    held = [pl.Fixed(pl.shapes.box(center=(0.0, 0.0, 0.0), size=(0.02, 0.6, 0.6)))]
    scene = pl.Scene(pl.GridBody(shape, 0.125), fixed=held)
    nodes = scene.body.nodes
    tip = int(np.argmax(scene.body.surface.positions(nodes)[:, 0]))
    g = grip(scene, np.ones(len(nodes)), tip)
    still = np.zeros_like(nodes)
    assert g.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert g.weights.min() >= 0.0
    centre = g.weights @ nodes
    force = g.force(nodes, still, centre + [0.0, 0.1, 0.0])
    np.testing.assert_allclose(force.sum(axis=0), [0.0, 0.1 * g.stiffness, 0.0], atol=1e-12)
    np.testing.assert_allclose(g.force(nodes, still, centre), 0.0, atol=1e-12)
    far = g.force(nodes, still, centre + [0.0, 1e6, 0.0])
    np.testing.assert_allclose(far.sum(axis=0), [0.0, g.reach * g.stiffness, 0.0], atol=1e-9)


def test_section_of_a_box_has_its_area():
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.5, 0.5), size=(1.0, 1.0, 1.0)), 0.125)
    found = section(body, 2, 0.5)
    points = found.points.at(body.nodes)
    a, b, c = (points[found.faces[:, i]] for i in range(3))
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    assert area == pytest.approx(1.0, rel=1e-9)
    assert np.ptp(points[:, 2]) < 1e-12
    assert section(body, 2, 5.0) is None


def test_edges_of_a_grid_and_its_cut_cells():
    n = 4
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.5, 0.5), size=(1.0, 1.0, 1.0)), 1.0 / n)
    edges, cut = cell_edges(body)
    assert len(edges) == 3 * n * (n + 1) ** 2
    assert not cut.any()
    body = pl.GridBody(pl.shapes.sphere(radius=0.6), 0.25)
    edges, cut = cell_edges(body)
    assert cut.any()
    assert len(np.unique(edges, axis=0)) == len(edges)


def test_ray_meets_the_front_of_a_ball():
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=4, radius=1.0)
    origin, target = np.array([0.3, 0.2, 5.0]), np.array([0.3, 0.2, 0.0])
    ray = (target - origin) / np.linalg.norm(target - origin)
    at = first_hit(ball.vertices, ball.faces, origin, ray)
    assert at == pytest.approx([0.3, 0.2, math.sqrt(1.0 - 0.13)], abs=4e-3)
    assert first_hit(ball.vertices, ball.faces, origin, -ray) is None
    assert first_hit(ball.vertices, ball.faces, origin, np.array([0.0, 1.0, 0.0])) is None


@pytest.mark.parametrize("law", [None, *LAWS])
def test_curve_of_a_material_starts_with_its_modulus(law):
    stretch, stress = pulled(law, pl.Material(1e4, 0.45))
    middle = len(stretch) // 2 - 4  # stretch 1
    assert stretch[middle] == pytest.approx(1.0)
    assert stress[middle] == pytest.approx(0.0, abs=1e-6)
    slope = (stress[middle + 1] - stress[middle - 1]) / (stretch[middle + 1] - stretch[middle - 1])
    assert slope == pytest.approx(1e4, rel=5e-3)
