"""Frames for ParaView show a rigid part as the body that it was."""

import meshio
import numpy as np
import pytest

import pliant as pl
from pliant.app.folders.export import FrameWriter


def test_a_rigid_part_is_shown_with_its_cells(tmp_path):
    body = pl.GridBody(pl.shapes.sphere(radius=0.3), 0.15)
    stuff = pl.Material(1e6, 0.3, 500.0)
    soft = pl.Part("soft", body, stuff, position=(0.0, 1.0, 0.0))
    rigid = pl.Part("rigid", body, stuff, position=(1.0, 1.0, 0.0), rigid=True)
    scene = pl.Scene(parts=[soft, rigid])
    stretch = np.diag([1.0, 1.001, 1.0])
    u = scene.body.nodes @ (stretch - np.eye(3))
    FrameWriter(scene).write(tmp_path / "frame.vtu", u)
    frame = meshio.read(tmp_path / "frame.vtu")
    number = np.concatenate(frame.cell_data["part"])
    assert (number == 0).sum() == (number == 1).sum() > len(body.cells)
    rest = frame.points - frame.point_data["displacement"]
    assert frame.points == pytest.approx(rest @ stretch, abs=1e-6)
    for name in ("stress", "energy_density", "density", "youngs_modulus"):
        values = np.concatenate(frame.cell_data[name])
        assert values[number == 1].mean(axis=0) == pytest.approx(
            values[number == 0].mean(axis=0), rel=1e-3, abs=1e-3 * float(np.abs(values).max())
        )
