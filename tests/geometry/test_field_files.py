"""Grids and scans from files: frames, voxels that are no cubes, labels."""

import sys

import numpy as np
import pytest

from pliant.core.errors import BadInput, MissingExtra
from pliant.geometry import load_field, load_shape, sample, shape_from_dict
from pliant.geometry import shapes as s

BALL = sample(s.sphere(radius=1, center=(0.2, 0, 0)), spacing=0.1)


def same(found, known, tolerance=1e-6):
    assert found.values.shape == known.values.shape
    assert np.allclose(found.values, known.values, atol=tolerance)
    assert np.allclose(found.origin, known.origin, atol=tolerance)
    assert found.spacing == pytest.approx(known.spacing, rel=1e-6)


def test_npy_needs_and_takes_a_spacing(tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray(BALL.values))
    same(load_field(tmp_path / "a.npy", BALL.origin, 0.1), BALL)
    again = shape_from_dict(load_field(tmp_path / "a.npy", BALL.origin, 0.1).to_dict())
    assert again.origin == BALL.origin


def test_given_data(data):
    field = load_shape(data / "sdf_dragon_56x54x28.npz")
    assert field.values.shape == (56, 54, 28)
    assert field.spacing == pytest.approx(0.1)
    assert field.origin == pytest.approx((-2.9, -0.3, -0.3))


def test_npz_in_2d(tmp_path):
    disc = sample(s.circle(radius=1), spacing=0.1)
    disc.save(tmp_path / "disc.npz")
    same(load_field(tmp_path / "disc.npz"), disc)


@pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2", "ascii"])
def test_nrrd(tmp_path, encoding):
    nrrd = pytest.importorskip("nrrd")
    header = {
        "space directions": np.eye(3) * 0.1,
        "space origin": np.array(BALL.origin),
        "space dimension": 3,
        "encoding": encoding,
    }
    nrrd.write(str(tmp_path / "a.nrrd"), BALL.values, header)
    same(load_field(tmp_path / "a.nrrd"), BALL)


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_nifti_with_flipped_and_swapped_axes(tmp_path, name):
    """Axes 0, 1, 2 of the file run along -y, x and z of space; the loader straightens them."""
    nibabel = pytest.importorskip("nibabel")
    stored = np.flip(BALL.values, axis=1).transpose(1, 0, 2)
    affine = np.eye(4)
    affine[:3, :3] = 0.1 * np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    affine[:3, 3] = BALL.origin
    affine[1, 3] += 0.1 * (BALL.values.shape[1] - 1)
    nibabel.save(nibabel.Nifti1Image(stored, affine), tmp_path / name)
    same(load_field(tmp_path / name), BALL, 1e-5)


def test_voxels_that_are_no_cubes_are_resampled(tmp_path):
    thick = BALL.values[:, :, ::2]
    np.save(tmp_path / "a.npy", thick)
    found = load_field(tmp_path / "a.npy", BALL.origin, (0.1, 0.1, 0.2))
    assert found.spacing == 0.1
    assert np.array_equal(found.values[:, :, ::2], thick)
    assert np.allclose(found.values[:, :, 1], (thick[:, :, 0] + thick[:, :, 1]) / 2)


def test_labels_become_a_distance(tmp_path):
    """A voxel ball of radius 10 voxels: volume within 2 %, distance within a voxel's half."""
    labels = np.where(BALL.values < 0, 3, 0).astype(np.uint8)
    np.save(tmp_path / "labels.npy", labels)
    for options in ({}, {"label": 3}, {"level": 1.5}):
        found = load_field(tmp_path / "labels.npy", BALL.origin, 0.1, **options)
        assert found.volume() == pytest.approx(4 / 3 * np.pi, rel=0.02)
        near = np.abs(BALL.values) < 0.3
        assert np.abs(found.values - BALL.values)[near].max() < 0.07
        assert np.array_equal(found.values < 0, labels > 0)
        again = shape_from_dict(found.to_dict())
        assert np.array_equal(again.values, found.values)


def test_label_that_fills_its_grid(tmp_path):
    np.save(tmp_path / "full.npy", np.ones((6, 6, 6), np.int16))
    found = load_field(tmp_path / "full.npy", spacing=1.0)
    assert found.contains([(2.5, 2.5, 2.5)])[0]
    assert not found.contains([(7, 2.5, 2.5)])[0]


def test_flat_box_of_thick_voxels(tmp_path):
    """Half depth of a slab of 3 voxels of thickness 2 along z is 3, whatever x and y are."""
    labels = np.zeros((30, 30, 9), np.int32)
    labels[5:25, 5:25, 3:6] = 1
    np.save(tmp_path / "slab.npy", labels)
    found = load_field(tmp_path / "slab.npy", spacing=(1, 1, 2))
    assert found.spacing == 1.0
    middle = found.distance([(15, 15, 8)])[0]
    assert middle == pytest.approx(-3, abs=0.6)


LABELS = np.zeros((24, 20, 18), np.uint8)
LABELS[12:20, 4:10, 6:12] = 2
MIDDLE = np.array([8.0, -13.0, 21.0])
"""Of the block of label 2 [mm], in RAS; voxels are 1 x 1 x 2 mm."""

CORNER = MIDDLE - [15.5, 6.5, 2 * 8.5]


def block_files(folder):
    """The same block in several files, each in millimetres."""
    nrrd, nibabel = pytest.importorskip("nrrd"), pytest.importorskip("nibabel")
    affine = np.diag([1.0, 1.0, 2.0, 1.0])
    affine[:3, 3] = CORNER
    image = nibabel.Nifti1Image(LABELS, affine)
    image.header.set_xyzt_units("mm")
    nibabel.save(image, folder / "ras.nii.gz")
    image.header.set_xyzt_units("unknown")
    nibabel.save(image, folder / "mute.nii.gz")
    for name, space, signs in (
        ("lps", "left-posterior-superior", (-1.0, -1.0, 1.0)),
        ("short", "LPS", (-1.0, -1.0, 1.0)),
        ("las", "left-anterior-superior", (-1.0, 1.0, 1.0)),
        ("ras", "right-anterior-superior", (1.0, 1.0, 1.0)),
    ):
        header = {
            "space": space,
            "space directions": np.diag(signs) @ np.diag([1.0, 1.0, 2.0]),
            "space origin": np.array(signs) * CORNER,
            "space units": ["mm", "mm", "mm"],
        }
        nrrd.write(str(folder / f"{name}.nrrd"), LABELS, header)


@pytest.mark.parametrize("name", ["ras.nii.gz", "lps.nrrd", "short.nrrd", "las.nrrd", "ras.nrrd"])
def test_every_medical_file_ends_in_metres_and_ras(tmp_path, name):
    """The block is 8 x 6 x 12 mm; its middle is where each header says, 8 mm to the right."""
    block_files(tmp_path)
    found = load_shape(tmp_path / name, label=2)
    lo, hi = (np.asarray(b) for b in found.bounds)
    grid = np.stack(np.meshgrid(*[np.linspace(a, b, 61) for a, b in zip(lo, hi, strict=True)],
                                indexing="ij"), axis=-1).reshape(-1, 3)  # fmt: skip
    inside = grid[found.contains(grid)]
    assert inside.mean(axis=0) == pytest.approx(1e-3 * MIDDLE, abs=0.3e-3)
    assert np.ptp(inside, axis=0) == pytest.approx([8e-3, 6e-3, 12e-3], abs=1.1e-3)
    assert found.spacing == pytest.approx(1e-3)
    again = shape_from_dict(found.to_dict())
    assert np.array_equal(again.values, found.values)


def test_units_are_asked_for(tmp_path, caplog):
    block_files(tmp_path)
    known = load_field(tmp_path / "ras.nii.gz", label=2)
    mute = tmp_path / "mute.nii.gz"
    metres = load_field(mute, label=2)
    assert metres.spacing == 1.0
    assert 'Say units = "mm"' in caplog.text
    same(load_field(mute, label=2, units="mm"), known)
    tenfold = load_field(mute, label=2, units="cm")
    assert tenfold.spacing == pytest.approx(0.01)
    assert shape_from_dict(tenfold.to_dict()).spacing == pytest.approx(0.01)
    caplog.clear()
    assert load_field(tmp_path / "ras.nii.gz", label=2, units="m").spacing == 1.0
    assert "the header's unit is 1 mm; m is taken" in caplog.text
    np.save(tmp_path / "a.npy", BALL.values)
    ball = load_field(tmp_path / "a.npy", BALL.origin, 0.1, units="mm")
    assert ball.volume() == pytest.approx(1e-9 * BALL.volume(), rel=1e-9)
    assert ball.distance([(0.2e-3, 0.0, 0.0)])[0] == pytest.approx(-1e-3, rel=0.01)
    with pytest.raises(BadInput, match='"mm", "cm" or "m", not \'inch\''):
        load_field(mute, label=2, units="inch")


def test_meshes_have_units(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((20.0, 10.0, 10.0)).export(tmp_path / "box.stl")
    found = load_shape(tmp_path / "box.stl", units="mm")
    assert np.ptp(found.bounds, axis=0) == pytest.approx([0.02, 0.01, 0.01])
    again = shape_from_dict(found.to_dict())
    assert np.ptp(again.bounds, axis=0) == pytest.approx([0.02, 0.01, 0.01])
    for units in ("inch", 3, None):
        if units is not None:
            with pytest.raises(BadInput, match=r"box\.stl: units must be"):
                load_shape(tmp_path / "box.stl", units=units)


@pytest.mark.parametrize(("name", "package"), [("a.nrrd", "nrrd"), ("a.nii.gz", "nibabel")])
def test_missing_package_says_what_to_install(tmp_path, monkeypatch, name, package):
    (tmp_path / name).write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pliant\[medical\]"):
        load_field(tmp_path / name)
