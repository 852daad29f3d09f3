"""Scene files: what goes in comes out, and what is wrong is named."""

import re
from dataclasses import replace

import numpy as np
import pytest
from command_line import block, write

import pliant as pl
from pliant.app.describing import body_size, scene_building
from pliant.app.describing.cell_count import grid_cells
from pliant.app.describing.scene_files import (
    build_scene,
    describe_scene,
    first_difference,
    load_scene,
    save_scene,
)
from pliant.app.describing.scenes import NEEDS_FILE, builtin_description, load_builtin, scene_names

BOX = {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.1, 2.0, 2.0]}
HISTORY = {"times": [0.0, 1.0], "factors": [0.0, 2.0]}
RICH = block(
    model="linear",
    gravity=[1.0, -9.0, 0.5],
    initial_velocity=[0.1, 0.2, 0.3],
    initial_spin=[0.0, 1.0, 0.0],
    tolerance=1e-6,
    description="with everything",
    material={
        "youngs_modulus": [500.0 + i for i in range(16)],
        "poisson_ratio": 0.25,
        "density": 2.0,
        "damping_frequencies": [1.0, 4.0],
        "damping_ratios": [0.05, 0.06],
        "branches": [{"modulus": 50.0, "time": 0.1}, {"modulus": 80.0, "time": 0.02}],
    },
    fixed=[
        {"region": BOX, "axes": "xy", "times": [0.0, 0.5], "displacements": [[0, 0, 0], [1, 0, 0]]},
        {"region": BOX, "axes": "z", "displacement": [0.0, 0.0, 0.1]},
    ],
    loads=[
        {"type": "traction", "region": BOX, "force": [0.0, 1.0, 0.0], "history": HISTORY},
        {"type": "pressure", "region": BOX, "pressure": 3.0},
        {"type": "point", "point": [0.5, 0.0, 0.0], "force": [0.0, -1.0, 0.0]},
        {"type": "body", "force": [0.0, 0.0, 1.0]},
    ],
    obstacles=[
        {"type": "plane", "normal": [0.1, 1.0, 0.0], "offset": -2.0},
        {"type": "shape", "shape": {"type": "sphere", "radius": 1.0, "center": [0, -3, 0]}},
    ],
    contact={"friction": 0.3, "stiffness": 1e4},
    integrator={"type": "HHT", "dt": 0.01, "alpha": -0.2},
)


def test_everything_survives_a_round_trip(tmp_path):
    first = load_scene(write(tmp_path / "a.toml", RICH))
    save_scene(first, tmp_path / "b.toml")
    second = load_scene(tmp_path / "b.toml")
    assert first_difference(describe_scene(first), describe_scene(second)) is None
    assert second.material.mass_damping == first.material.mass_damping > 0.0
    assert second.material.branches == (pl.Branch(50.0, 0.1), pl.Branch(80.0, 0.02))
    assert first.fixed[0].at(np.zeros((1, 3)), 0.25)[0, 0] == 0.5
    assert first.loads[0].history(np.zeros((1, 1)), 0.5)[0, 0] == 1.0
    assert np.array_equal(second.material.youngs_modulus, 500.0 + np.arange(16))
    assert second.contact == first.contact
    assert second.integrator == first.integrator


@pytest.mark.parametrize("name", [n for n in scene_names() if n not in NEEDS_FILE])
def test_builtin_scenes_survive_a_round_trip(tmp_path, name):
    description = builtin_description(name)
    # the body is not what is tested here: the same scenes on bodies that take no time
    if description["body"]["kind"] == "tets":
        description["body"] = {"kind": "grid", "spacing": 0.1}
    else:
        description["body"]["spacing"] = 0.2
    first = build_scene(description)
    first.save(tmp_path / "scene.toml")
    again = load_scene(tmp_path / "scene.toml")
    assert first_difference(describe_scene(first), describe_scene(again)) is None
    assert again.source is not None
    assert again.source["steps"] == description["steps"]


def test_a_variant_is_saved_as_it_is(tmp_path):
    from dataclasses import replace

    scene = build_scene(block())
    changed = replace(scene, material=replace(scene.material, youngs_modulus=123.0))
    changed.save(tmp_path / "s.toml")
    assert load_scene(tmp_path / "s.toml").material.youngs_modulus == 123.0


def test_paths_are_relative_to_the_scene_file(tmp_path, monkeypatch):
    pl.shapes.sample(pl.shapes.sphere(radius=0.5), spacing=0.2).save(tmp_path / "ball.npz")
    inside = tmp_path / "s.toml"
    write(inside, {"shape": {"file": "ball.npz"}, "body": {"kind": "grid"}})
    scene = load_scene(inside)
    assert scene.body.spacing == 0.2  # the field's own lattice
    scene.save(tmp_path / "copy.toml")
    assert 'file = "ball.npz"' in (tmp_path / "copy.toml").read_text()
    (tmp_path / "below").mkdir()
    scene.save(tmp_path / "below" / "s.toml")
    monkeypatch.chdir("/")
    assert len(load_scene(tmp_path / "below" / "s.toml").body.nodes) == len(scene.body.nodes)


def test_a_scene_made_in_python_is_saved_too(tmp_path):
    body = pl.GridBody(pl.shapes.sphere(radius=0.5), spacing=0.25)
    scene = pl.Scene(body, material=pl.Material(youngs_modulus=77.0))
    scene.save(tmp_path / "s.toml")
    again = load_scene(tmp_path / "s.toml")
    assert np.array_equal(again.body.nodes, body.nodes)
    assert again.material.youngs_modulus == 77.0


def test_a_body_of_bare_arrays_says_that_it_cannot_be_saved(tmp_path):
    nodes = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(pl.BadInput, match="not built from a description"):
        pl.Scene(pl.TetBody((nodes, [[0, 1, 2, 3]]))).save(tmp_path / "s.toml")
    assert not list(tmp_path.iterdir())


def test_a_function_cannot_be_saved():
    from dataclasses import replace

    scene = build_scene(block())
    held = pl.Fixed(scene.fixed[0].region, displacement=lambda x, t: 0.0 * x)
    with pytest.raises(pl.BadInput, match=r"fixed\[0\].*Python function"):
        describe_scene(replace(scene, fixed=[held]))


def test_the_torus_has_the_nodes_of_the_seed():
    body = load_builtin("torus").body
    assert abs(len(body.nodes) - 9220) < 0.03 * 9220


def test_the_cuboid_has_the_cells_of_the_seed():
    body = load_builtin("cuboid").body
    assert (len(body.cells), len(body.nodes)) == (26_624, 29_733)
    assert len(load_builtin("cuboid", resolution=5).body.cells) == 14 * 4 * 8
    with pytest.raises(pl.BadInput, match="no option 'size'"):
        load_builtin("cuboid", size=3)


def test_bunny_and_dragon_say_where_their_grids_come_from(monkeypatch, tmp_path):
    monkeypatch.delenv("PLIANT_DATA", raising=False)
    for name in ("bunny", "dragon"):
        with pytest.raises(pl.BadInput, match="--shape FILE"):
            load_scene(name)
    monkeypatch.setenv("PLIANT_DATA", str(tmp_path))
    with pytest.raises(pl.BadInput, match="sdf_bunny_27x31x22.npz: there is no such file"):
        load_scene("bunny")
    pl.shapes.sample(pl.shapes.sphere(radius=0.5), spacing=0.2).save(tmp_path / "b.npz")
    assert load_builtin("bunny", shape=tmp_path / "b.npz").body.spacing == 0.2


def test_a_replaced_body_is_what_is_saved(tmp_path):
    """The scene remembers the description it came from; another body is not in it."""
    scene = build_scene(block())
    finer = pl.GridBody(pl.shapes.box(center=(0.4, 0.0, 0.0), size=(0.8, 0.3, 0.3)), 0.1)
    replace(scene, body=finer).save(tmp_path / "finer.toml")
    again = load_scene(tmp_path / "finer.toml")
    assert np.array_equal(again.body.nodes, finer.nodes)
    assert again.source["steps"] == scene.source["steps"]
    scene.save(tmp_path / "same.toml")
    assert np.array_equal(load_scene(tmp_path / "same.toml").body.nodes, scene.body.nodes)


def test_a_body_beyond_the_memory_is_refused_at_once(monkeypatch):
    """Two million cells and a gigabyte: refused in a second, with a spacing that fits."""
    monkeypatch.setattr(body_size, "free_memory", lambda: 10**9)
    fine = block(body={"kind": "grid", "spacing": 0.005})
    monkeypatch.setattr(scene_building, "GridBody", None)  # would fail if it were called
    with pytest.raises(pl.BadInput, match="body: spacing 0.005 means about 2,0") as told:
        build_scene(fine)
    offered = float(re.search(r"a spacing of ([\d.]+) would do", str(told.value)).group(1))
    shape = pl.shapes.box(center=(0.5, 0.0, 0.0), size=(1.0, 0.5, 0.5))
    assert 50_000 < grid_cells(shape, offered)[0] * 1.0 < 10**9 / body_size.BYTES_A_CELL
    monkeypatch.setattr(body_size, "free_memory", lambda: 10**12)
    with pytest.raises(TypeError):
        build_scene(fine)


def test_free_memory_is_a_number_of_bytes():
    assert 10**8 < body_size.free_memory() < 10**14
