"""A soft block between two plates that are driven together, against walls that are prescribed."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.march import march

E, H = 1e5, 1 / 6
STUFF = pl.Material(E, 0.3, 1000.0, stiffness_damping=0.02)
HARD = pl.Material(1e4 * E, 0.0, 1000.0)
SQUEEZE = 0.15  # of the height at either side
BLOCK = pl.GridBody(pl.shapes.box(size=(1, 1, 1)), H)


def plate(name, side):
    away, last = 0.625 * side, (0.0, -side * SQUEEZE, 0.0)
    everywhere = pl.shapes.box(center=(0, away, 0), size=(3, 0.5, 3))
    motion = pl.Motion((0.0, 0.4, 9.0), ((0, 0, 0), last, last))
    body = pl.GridBody(pl.shapes.box(size=(1.6, 0.25, 1.6)), 0.25)
    return pl.Part(name, body, HARD, position=(0, away, 0), fixed=[pl.Fixed(everywhere, motion)])


def force_of_plates(law):
    """On either plate [N], once the block has come to rest."""
    scene = pl.Scene(
        parts=[pl.Part("block", BLOCK, STUFF), plate("top", 1), plate("bottom", -1)],
        gravity=(0, 0, 0), contact=law, integrator=pl.ImplicitEuler(0.04),
    )  # fmt: skip
    model = scene.make_model()
    *_, last = march(model, model.initial_state(), until=30)
    state, at = last.after, model.starts
    force = model.between(state).forces(state.u.numpy(), state.v.numpy())
    return force[at[1] : at[2], 1].sum(), -force[at[2] :, 1].sum()


def force_of_walls():
    """The same of a rest whose faces are displaced, and free to slide."""
    faces = [
        pl.Fixed(
            pl.shapes.box(center=(0, 0.5 * s, 0), size=(2, 1e-3, 2)), (0, -s * SQUEEZE, 0), "y"
        )
        for s in (1, -1)
    ]
    middle = pl.Fixed(pl.shapes.box(center=(0, 0.5, 0), size=(0.3, 1e-3, 0.3)), axes="xz")
    scene = pl.Scene(BLOCK, STUFF, gravity=(0, 0, 0), fixed=[*faces, middle])
    stress = scene.stress().at(pl.solve_static(scene)).stress  # per area at rest, no cell turns
    return -np.average(stress[:, 1, 1], weights=BLOCK.cell_volumes)


@pytest.mark.slow
def test_a_squeezed_block_pushes_as_prescribed_walls_say():
    walls = force_of_walls()
    assert walls == pytest.approx(2 * SQUEEZE * E, rel=1e-3)
    sharp = pl.ContactLaw(stiffness=100 * E / H, sharpness=400 / H, margin=0.0)
    for plates in force_of_plates(sharp):
        assert plates == pytest.approx(walls, rel=0.02)
    for plates in force_of_plates(pl.ContactLaw()):  # surfaces overlap by a tenth of a cell
        assert plates == pytest.approx(walls, rel=0.07)
