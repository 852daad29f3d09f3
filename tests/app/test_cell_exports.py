"""Cells for ParaView and 3D Slicer: read back with other people's readers, numbers known before."""

import json

import meshio
import numpy as np
import pytest
from command_line import block, pliant, write

import pliant as pl
from pliant.app.folders.export import FrameWriter
from pliant.app.formats.sequence import write_cell_sequence, write_displacement_fields
from pliant.dynamics.trajectory import Trajectory
from pliant.fem.cutting.thin_layers import BEYOND

E, NU = 3.0e4, 0.3
SHAPE = pl.shapes.box(center=(0.51, 0.33, 0.24), size=(1.0, 0.6, 0.4))


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def motion(u, **options):
    body = pl.GridBody(SHAPE, 0.2)
    scene = pl.Scene(body, options.pop("material", pl.Material(E, NU)), **options)
    moved = u(body.nodes)
    return Trajectory(scene, np.zeros(1), moved[None], 0.5 * moved[None], 0.0 * moved,
                      np.zeros(0, int))  # fmt: skip


def volumes(mesh):
    """Of hexahedra (as parallelepipeds) and tetrahedra."""
    out = []
    for cells in mesh.cells:
        p = mesh.points[cells.data]
        hexahedra = cells.type == "hexahedron"
        edges = p[:, [1, 3, 4] if hexahedra else [1, 2, 3]] - p[:, :1]
        out.append(np.linalg.det(edges) / (1.0 if hexahedra else 6.0))
    return np.concatenate(out)


def test_tensors_of_a_turned_and_stretched_body(tmp_path):
    """Pulled by 2 %, then turned by 50 degrees: s = E e along the turned axis, Green's strain."""
    e = 0.02
    stretch = np.diag([1 + e, 1 - NU * e, 1 - NU * e])
    F = turn(np.radians(50)) @ stretch
    run = motion(lambda x: x @ F.T - x)
    write_cell_sequence(tmp_path, run)
    mesh = meshio.read(tmp_path / "frame_000000.vtu")
    data = {name: np.concatenate(blocks) for name, blocks in mesh.cell_data.items()}
    axis = turn(np.radians(50))[:, 0]
    stress = E * e * np.outer(axis, axis)
    assert data["stress"].shape[1] == 9
    assert np.allclose(data["stress"].reshape(-1, 3, 3), stress, atol=2e-4 * E * e)
    assert np.allclose(data["strain"].reshape(-1, 3, 3), 0.5 * (F.T @ F - np.eye(3)), atol=1e-8)
    assert data["energy_density"] == pytest.approx(0.5 * E * e**2, rel=1e-9)
    assert data["von_mises"] == pytest.approx(E * e, rel=1e-9)
    assert data["youngs_modulus"] == pytest.approx(E, rel=1e-12)
    assert data["poisson_ratio"] == pytest.approx(NU, rel=1e-12)


def test_a_law_s_stress_is_the_true_one(tmp_path):
    """Neo-Hookean, sheared by 1: von Mises of the written tensor is what is written as such."""
    run = motion(lambda x: np.outer(x[:, 1], [1.0, 0.0, 0.0]), law="neo-hookean")
    FrameWriter(run.scene).write(tmp_path / "f.vtu", run.displacements[0])
    mesh = meshio.read(tmp_path / "f.vtu")
    s = np.concatenate(mesh.cell_data["stress"]).reshape(-1, 3, 3).astype(float)
    mu = E / (2.0 * (1.0 + NU))
    assert s[:, 0, 1] == pytest.approx(mu, rel=1e-6)  # the shear stress of a simple shear of 1
    assert s[:, 0, 0] - s[:, 1, 1] == pytest.approx(mu, rel=1e-6)
    dev = s - np.trace(s, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
    q = np.sqrt(1.5 * (dev**2).sum(axis=(1, 2)))
    assert q == pytest.approx(np.concatenate(mesh.cell_data["von_mises"]), rel=1e-6)
    strain = np.concatenate(mesh.cell_data["strain"]).reshape(-1, 3, 3)
    assert np.allclose(strain, [[0, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]], atol=1e-6)


def test_the_body_as_it_is_cut(tmp_path):
    """The files' cells have the box's volume and its corners; whole cells would have twice it."""
    run = motion(lambda x: 0.0 * x)
    write_cell_sequence(tmp_path, run)
    mesh = meshio.read(tmp_path / "frame_000000.vtu")
    assert volumes(mesh).sum() == pytest.approx(1.0 * 0.6 * 0.4, rel=1e-9)
    assert len(run.scene.body.cells) * 0.2**3 > 1.9 * 0.24
    assert mesh.points.min(axis=0) == pytest.approx([0.01, 0.03, 0.04], abs=1e-9)
    assert mesh.points.max(axis=0) == pytest.approx([1.01, 0.63, 0.44], abs=1e-9)
    assert np.concatenate(mesh.cell_data["fill"]).max() <= (1.0 + BEYOND) ** 3  # with thin layers


def test_materials_of_regions_are_in_the_file(tmp_path):
    right = pl.shapes.half_space(normal=(-1, 0, 0), offset=-0.6)
    material = pl.Material(E, NU, regions=[pl.MaterialRegion(right, 5 * E, density=3.0)])
    run = motion(lambda x: 0.0 * x, material=material)
    write_cell_sequence(tmp_path, run)
    mesh = meshio.read(tmp_path / "frame_000000.vtu")
    size, density = volumes(mesh), np.concatenate(mesh.cell_data["density"])
    assert (size * density).sum() == pytest.approx(0.24 * (1.0 + 2.0 * 0.41), rel=1e-9)
    stiff = np.concatenate(mesh.cell_data["youngs_modulus"]) > 2 * E
    assert size[stiff].sum() == pytest.approx(0.41 * 0.24, rel=1e-9)


def test_legacy_vtk_in_millimetres(tmp_path):
    run = motion(lambda x: 0.1 * x)
    written = write_cell_sequence(tmp_path, run, ".vtk", scale=1e3)
    assert [p.name for p in written] == ["frame_000000.vtk", "times.json"]
    assert (tmp_path / "frame_000000.vtk").read_bytes().startswith(b"# vtk DataFile Version 4.2")
    mesh = meshio.read(tmp_path / "frame_000000.vtk")
    assert volumes(mesh).sum() == pytest.approx(1e9 * 0.24 * 1.1**3, rel=1e-9)
    rest = mesh.points - mesh.point_data["displacement"]
    assert rest.max(axis=0) == pytest.approx([1010.0, 630.0, 440.0], abs=1e-6)
    assert json.loads((tmp_path / "times.json").read_text()) == {"frame_000000.vtk": 0.0}


def test_displacement_fields(tmp_path):
    """An affine motion is on the lattice what it is anywhere, in the frame the header states."""
    nrrd = pytest.importorskip("nrrd")
    A = np.array([[0.1, 0.2, 0.0], [0.0, -0.1, 0.05], [0.03, 0.0, 0.2]])
    run = motion(lambda x: x @ A.T + [0.01, 0.02, 0.03])
    write_displacement_fields(tmp_path, run, scale=1e3)
    field, header = nrrd.read(str(tmp_path / "displacement_000000.nrrd"))
    assert header["space"] == "right-anterior-superior"
    assert header["kinds"] == ["vector", "domain", "domain", "domain"]
    steps = np.asarray(header["space directions"])[1:]
    assert np.allclose(steps, 200.0 * np.eye(3))
    index = np.stack(np.meshgrid(*[np.arange(n) for n in field.shape[1:]], indexing="ij"), -1)
    at = header["space origin"] + index @ steps
    inside = SHAPE.contains(at.reshape(-1, 3) / 1e3).reshape(at.shape[:-1])
    assert inside.sum() >= 16
    expected = 1e3 * (at / 1e3 @ A.T + [0.01, 0.02, 0.03])
    assert np.allclose(np.moveaxis(field, 0, 3)[inside], expected[inside], atol=1e-3)
    largest = np.abs(1e3 * run.displacements).max()
    assert np.isfinite(field).all()
    assert np.abs(field).max() <= largest * (1 + 1e-6)  # beyond the body it does not grow


def test_of_tetrahedra(tmp_path):
    nrrd = pytest.importorskip("nrrd")
    body = pl.TetBody(SHAPE, edge_length=0.3)
    scene = pl.Scene(body, pl.Material(E, NU))
    u = 0.1 * body.nodes
    run = Trajectory(scene, np.zeros(1), u[None], 0 * u[None], 0 * u, np.zeros(0, int))
    write_cell_sequence(tmp_path, run)
    mesh = meshio.read(tmp_path / "frame_000000.vtu")
    assert mesh.cells[0].type == "tetra10"
    assert mesh.cell_data["strain"][0][:, 0] == pytest.approx(0.5 * (1.1**2 - 1.0), rel=1e-5)
    write_displacement_fields(tmp_path / "n", run)
    field, header = nrrd.read(str(tmp_path / "n" / "displacement_000000.nrrd"))
    assert np.abs(field).max() <= np.abs(u).max() * (1 + 1e-6)


def test_at_the_terminal(tmp_path):
    scene, out = write(tmp_path / "block.toml", block(steps=1)), tmp_path / "fields"
    pliant("export", scene, "--format", "nrrd", "--units", "mm", "--out", out)
    assert sorted(p.name for p in out.iterdir()) == [
        "displacement_000000.nrrd", "displacement_000001.nrrd", "times.json",
    ]  # fmt: skip
    refused = pliant("export", scene, "--out", tmp_path / "a.glb", "--units", "mm", check=2)
    assert "--units goes with --format vtu, vtk, nrrd" in " ".join(refused.stderr.split())
