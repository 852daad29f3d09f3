"""Scenes with more than one material as files: regions, labels, and values for single cells."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing.scene_files import build_scene, read_description
from pliant.app.describing.side_files import side_path

BAR = """
[shape]
type = "box"
center = [1.0, 0.1, 0.1]
size = [2.0, 0.2, 0.2]
[body]
spacing = 0.1
"""


def written(folder, text, name="scene.toml"):
    (folder / name).write_text(BAR + text)
    return folder / name


def test_a_region_with_a_shape(tmp_path):
    scene = pl.load_scene(
        written(
            tmp_path,
            """
[material]
youngs_modulus = 1000.0
[[material.regions]]
youngs_modulus = 5000.0
density = 3.0
shape = {type = "half_space", normal = [-1.0, 0.0, 0.0], offset = -1.5}
""",
        )
    )
    x = scene.body.nodes[scene.body.cells].mean(axis=1)[:, 0]
    assert (scene.cell_material.youngs_modulus == np.where(x > 1.5, 5000.0, 1000.0)).all()
    assert scene.cell_material.density.sum() == pytest.approx(15 * 4 + 3.0 * 5 * 4)
    scene.save(tmp_path / "again.toml")
    again = pl.load_scene(tmp_path / "again.toml")
    assert (again.cell_material.density == scene.cell_material.density).all()
    assert again.material.youngs_modulus == 1000.0
    assert not side_path(tmp_path / "again.toml").exists()


def label_volume(folder):
    """Voxels of 0.1: labels 1, 2 and 3 side by side along x, ten by four by four each."""
    labels = np.zeros((32, 6, 6), np.uint8)
    for k in range(3):
        labels[1 + 10 * k : 11 + 10 * k, 1:5, 1:5] = k + 1
    np.savez(folder / "labels.npz", values=labels, origin=np.zeros(3), spacing=np.array(0.1))


@pytest.mark.parametrize("nested", [False, True])
def test_labels_of_the_scene_s_own_volume(tmp_path, nested):
    label_volume(tmp_path)
    shape = '{file = "labels.npz"}'
    if nested:
        shape = '{type = "translated", offset = [1.0, 0.0, 0.0], shape = {file = "labels.npz"}}'
    (tmp_path / "scene.toml").write_text(
        f"""
shape = {shape}
[body]
spacing = 0.1
[[material.regions]]
label = [1, 3]
youngs_modulus = 7.0
[[material.regions]]
label = 2
youngs_modulus = 8.0
"""
    )
    scene = pl.load_scene(tmp_path / "scene.toml")
    E, volumes = scene.cell_material.youngs_modulus, scene.body.cell_volumes
    assert set(E) == {7.0, 8.0}  # no cell is of neither
    # the middles of cells between two voxels are of both labels, so of the later region
    assert volumes[E == 8.0].sum() / volumes.sum() == pytest.approx(11.0 / 30.0, abs=0.01)
    scene.save(tmp_path / "again.toml")
    assert (pl.load_scene(tmp_path / "again.toml").cell_material.youngs_modulus == E).all()


def test_several_labels_make_one_shape(tmp_path):
    label_volume(tmp_path)
    one, two, both = (
        pl.GridBody(pl.load_shape(tmp_path / "labels.npz", label=label)).volume
        for label in (1, 2, [1, 2])
    )
    assert one == pytest.approx(two, rel=0.01)
    assert both == pytest.approx(one + two, rel=0.05)  # edges between them are not rounded


def test_values_of_cells_lie_beside_the_scene(tmp_path):
    """No list of 3,000 numbers in the text; the same bits come back."""
    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(1.5, 1.5, 1.5)), 0.1)
    moduli = np.random.default_rng(2).uniform(1e3, 2e3, len(body.cells))
    assert len(moduli) > 3000
    times = np.linspace(0.0, 1.0, 200)
    shake = pl.Motion(tuple(times), tuple((0.0, float(np.sin(t)), 0.0) for t in times))
    scene = pl.Scene(
        body, pl.Material(moduli),
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=-0.7), shake)],
    )  # fmt: skip
    scene.save(tmp_path / "many.toml")
    assert len((tmp_path / "many.toml").read_text()) < 2000
    with np.load(tmp_path / "many.cells.npz", allow_pickle=False) as found:
        assert (found["material.youngs_modulus"] == moduli).all()
    again = pl.load_scene(tmp_path / "many.toml")
    assert (again.material.youngs_modulus == moduli).all()
    assert again.fixed[0].displacement == shake
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("many.toml", "many.cells.npz"):
        (tmp_path / name).rename(moved / name)
    assert (pl.load_scene(moved / "many.toml").material.youngs_modulus == moduli).all()


def test_a_list_in_the_file_is_still_read(tmp_path):
    path = written(tmp_path, f"[material]\nyoungs_modulus = {[5.0] * 80}\n")
    assert (pl.load_scene(path).material.youngs_modulus == 5.0).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[material.regions]]\nyoungs_modulus = 5.0\n", r"material: regions\[0\]: give a shape"),
        (
            "[[material.regions]]\nlabel = 2\nyoungs_modulus = 5.0\n",
            r"regions\[0\].label: the scene's \[shape\] is no volume of labels",
        ),
        (
            "[[material.regions]]\nlable = 2\n",
            r"material.regions\[0\].lable: there is no such key; did you mean 'label'",
        ),
        (
            '[[material.regions]]\nshape = {type = "sphere", radius = 1.0}\n',
            "needs a number of its own",
        ),
        (
            '[[material.regions]]\ndensity = 0.0\nshape = {type = "sphere", radius = 1.0}\n',
            r"material.regions\[0\].density: it must be greater than 0",
        ),
        (
            '[[material.regions]]\ndensity = 1.0\nshape = {type = "circle", radius = 1.0}\n',
            r"regions\[0\]: its shape is 2D",
        ),
        (
            '[material.density]\nfile = "none.npz"\narray = "a"\n',
            "material.density: .*none.npz: there is no such file",
        ),
    ],
)
def test_what_can_be_wrong(tmp_path, text, said):
    with pytest.raises(pl.BadInput, match=said):
        pl.load_scene(written(tmp_path, text))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"other": np.ones(80)}, "it has no array 'a'"),
        ({"a": np.ones(80, bool)}, "'a' is no list of numbers"),
        ({"a": np.ones((2, 2, 2))}, "'a' is no list of numbers"),
        ({"a": np.ones(7)}, "youngs_modulus has shape"),
        ({"a": np.full(80, np.nan)}, "it must be a finite number"),
        ({"a": np.full(80, {}, object)}, "pickled, which is never loaded"),
    ],
)
def test_a_side_file_from_anywhere(tmp_path, arrays, said):
    np.savez(tmp_path / "s.npz", **arrays)
    text = '[material.youngs_modulus]\nfile = "s.npz"\narray = "a"\n'
    with pytest.raises(pl.BadInput, match=said):
        pl.load_scene(written(tmp_path, text))


def test_a_run_of_many_moduli_is_gone_on_with(tmp_path):
    """Its scene is recognised though its numbers lie in a file, and another one is not."""
    from pliant.app.folders.run_directory import RunDirectory, describe

    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(0.5, 0.5, 0.5)), 0.1)
    scene = pl.Scene(body, pl.Material(np.linspace(1e3, 2e3, len(body.cells))))
    directory = RunDirectory(tmp_path / "run")
    description, digest = describe(scene)
    directory.begin(scene, digest)
    directory.require_same(description, digest)
    other = replace(scene, material=pl.Material(np.linspace(1e3, 2.1e3, len(body.cells))))
    with pytest.raises(pl.BadInput, match=r"another scene \(material.youngs_modulus\[1\]"):
        directory.require_same(describe(other)[0], digest)
    again = build_scene(read_description(tmp_path / "run" / "scene.toml"))
    assert (again.material.youngs_modulus == scene.material.youngs_modulus).all()
    directory.clear()
    assert not side_path(tmp_path / "run" / "scene.toml").exists()
