"""A lattice that lies along a shape's own directions: turning everything turns the answer."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device
from pliant.fem.forces.hyperelastic import Hyperelasticity
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.transform import rotation_matrix
from pliant.geometry.upright import upright


@pl.energy
def fibred(F, p):
    """Fibres along x."""
    J = pl.laws.det(F)
    I4 = F[0, 0] ** 2 + F[1, 0] ** 2 + F[2, 0] ** 2
    shape = p.mu / 2 * (pl.laws.first_invariant(F) - 3 - 2 * np.log(J))
    return shape + p.k / 2 * np.log(J) ** 2 + p.f * (I4 - 1) ** 2


AXIS, ANGLE = (0.3, -0.8, 0.5), 1.1
BEAM = pl.shapes.box(center=(0.05, 0.002, 0.001), size=(0.1, 0.03, 0.024))
END = pl.shapes.box(center=(-0.02, 0, 0), size=(0.0402, 0.1, 0.1))
RUBBER = pl.Material(6e4, 0.45, 1070.0, mass_damping=0.2, stiffness_damping=0.001)
DOWN = np.array([0.0, -9.81, 0.0])


def turn(dim=3):
    unit = np.array(AXIS) / np.linalg.norm(AXIS)
    return rotation_matrix(ANGLE, None if dim == 2 else tuple(unit))


def turned(shape):
    if shape.dim == 2:
        return shape.rotated(angle=ANGLE)
    return shape.rotated(axis=AXIS, angle=ANGLE)


def pair(shape, region, spacing, **options):
    """The scene upright, and all of it turned."""
    R = turn(shape.dim)
    out = []
    for change, g in ((lambda s: s, DOWN), (turned, None)):
        g = DOWN[: shape.dim] if g is not None else R @ DOWN[: shape.dim]
        fixed = [] if region is None else [pl.Fixed(change(region))]
        body = pl.GridBody(change(shape), spacing)
        out.append(pl.Scene(body, RUBBER, gravity=tuple(g), fixed=fixed, **options))
    return out


VARIANTS = {
    "corotated": {},
    "linear": {"model": "linear"},
    "frozen": {"model": "corotated-frozen"},
    "pointwise": {"dilatation": "pointwise"},
    "neo-hookean": {"law": "neo-hookean"},
    "yeoh": {"law": "yeoh"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_turned_swing_is_the_swing_turned(variant):
    scheme = pl.GeneralisedAlpha(0.004)
    first, second = pair(BEAM, END, 0.0083, integrator=scheme, tolerance=1e-9, **VARIANTS[variant])
    assert len(first.body.cells) == len(second.body.cells)
    one, two = (pl.simulate(s, 12) for s in (first, second))
    size = np.abs(one.displacements).max()
    assert size > 1e-3
    assert two.displacements @ turn() == pytest.approx(one.displacements, abs=1e-6 * size)
    for name in ("kinetic", "elastic", "gravity"):
        found, expected = getattr(two.energies, name), getattr(one.energies, name)
        assert found == pytest.approx(expected, abs=1e-6 * np.abs(one.energies.gravity).max())


def test_in_the_plane():
    plate = pl.shapes.box(center=(0.05, 0.002), size=(0.1, 0.03))
    end = pl.shapes.box(center=(-0.02, 0), size=(0.0402, 0.1))
    first, second = pair(plate, end, 0.0083, tolerance=1e-9)
    one, two = (pl.simulate(s, 12) for s in (first, second))
    size = np.abs(one.displacements).max()
    assert two.displacements @ turn(2) == pytest.approx(one.displacements, abs=1e-6 * size)


def test_statics_modes_and_stress():
    from pliant.fem.forces.stress import StressField

    first, second = pair(BEAM, END, 0.0083)
    one, two = (pl.solve_static(s, tolerance=1e-10) for s in (first, second))
    assert two @ turn() == pytest.approx(one, abs=1e-7 * np.abs(one).max())
    frequencies = [pl.modes(s, 4).frequencies for s in (first, second)]
    assert frequencies[1] == pytest.approx(frequencies[0], rel=1e-7)
    lam, mu = RUBBER.lame(len(first.body.cells))
    stresses = [
        StressField(s.body).at(u, lam, mu).von_mises for s, u in ((first, one), (second, two))
    ]
    assert stresses[1] == pytest.approx(stresses[0], rel=1e-5, abs=1e-5 * stresses[0].max())


def test_a_law_with_fibres_sees_the_world():
    """Fibres lie along directions of the world, not of the lattice: psi of a uniform stretch."""
    body = pl.GridBody(turned(BEAM), 0.0083)
    stretch = np.array([[1.2, 0.1, 0.0], [0.0, 0.9, 0.05], [0.1, 0.0, 1.1]])
    u = body.nodes @ (stretch - np.eye(3)).T
    elastic = Hyperelasticity(body, fibred(mu=300.0, k=3000.0, f=100.0))
    J, I4 = np.linalg.det(stretch), np.sum(stretch[:, 0] ** 2)
    psi = 150.0 * (np.sum(stretch**2) - 3.0 - 2.0 * np.log(J)) + 1500.0 * np.log(J) ** 2
    psi += 100.0 * (I4 - 1.0) ** 2
    assert elastic.energy(to_device(u, wp.vec3d)) == pytest.approx(psi * body.volume, rel=1e-9)


@pytest.mark.parametrize("dim", [2, 3])
def test_points_are_found_and_walls_hold(dim):
    rng = np.random.default_rng(3)
    shape = BEAM if dim == 3 else pl.shapes.box(center=(0.05, 0.0), size=(0.1, 0.03))
    body = pl.GridBody(turned(shape), 0.0071)
    A, b = rng.normal(size=(dim, dim)), rng.normal(size=dim)
    inside = (np.array([0.05, 0.0, 0.0][:dim]) + rng.uniform(-0.01, 0.01, (40, dim))) @ turn(dim).T
    assert body.displacement_at(inside, body.nodes @ A.T + b) == pytest.approx(
        inside @ A.T + b, rel=1e-12
    )
    whole = pl.GridBody(shape, 0.0071)
    assert body.volume == pytest.approx(whole.volume, rel=1e-12)
    points = body.surface.positions(body.nodes)
    assert np.abs(turned(shape).distance(points)).max() < 1e-12


def flat_mesh(shape):
    import trimesh

    box = trimesh.creation.box(extents=shape.size)
    return np.asarray(box.vertices) + shape.center, np.asarray(box.faces)


def test_directions_of_shapes():
    cube = pl.shapes.box(size=(1, 1, 1))
    assert upright(cube)[1] is None
    assert upright(cube.rotated(axis=(0, 0, 1), angle=np.pi / 2))[1] is None
    inner, axes = upright(turned(cube).translated((1, 2, 3)).scaled(2.0))
    assert axes == pytest.approx(turn())
    assert inner.distance(np.zeros((1, 3))) == pytest.approx(
        cube.translated((1, 2, 3) @ turn()).scaled(2.0).distance(np.zeros((1, 3)))
    )
    away = turned(cube).rotated(axis=AXIS, angle=-ANGLE)
    assert upright(away)[1] is None
    axis = np.array([1.0, 2.0, 0.5])
    for shape in (
        pl.shapes.cylinder(radius=0.2, height=1.0, axis=axis),
        pl.shapes.capsule(start=(0, 0, 0), end=axis, radius=0.1),
        pl.shapes.torus(major=1.0, minor=0.3, axis=axis),
    ):
        axes = upright(shape)[1]
        assert axes is not None
        assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-14)
        assert np.linalg.det(axes) == pytest.approx(1.0)
        assert np.abs(axes.T @ axis).max() == pytest.approx(np.linalg.norm(axis))
    hole = pl.shapes.sphere(radius=0.2)
    assert upright(turned(cube) - hole)[1] == pytest.approx(turn())
    assert upright(hole | turned(cube))[1] is None
    mirrored = upright(turned(cube).mirrored(normal=(1, 0, 0)))[1]
    assert mirrored is not None
    assert np.linalg.det(mirrored) == pytest.approx(1.0)


def test_a_mesh_of_a_turned_box_has_the_directions_of_its_faces():
    vertices, faces = flat_mesh(BEAM)
    mesh = MeshShape(vertices=vertices @ turn().T, faces=faces)
    axes = upright(mesh)[1]
    assert axes is not None
    assert np.sort(np.abs(axes.T @ turn()).max(axis=1)) == pytest.approx(np.ones(3))
    body, straight = pl.GridBody(mesh, 0.0083), pl.GridBody(turned(BEAM), 0.0083)
    assert body.volume == pytest.approx(straight.volume, rel=1e-9)
    assert upright(MeshShape(vertices=vertices, faces=faces))[1] is None


def test_a_scan_has_none():
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=2)
    shape = MeshShape(vertices=np.asarray(ball.vertices), faces=np.asarray(ball.faces))
    assert upright(shape)[1] is None


def test_axes_of_the_world_by_name(tmp_path):
    body = pl.GridBody(turned(BEAM), 0.0083, axes="world")
    assert body.axes is None
    scene = pl.Scene(body, RUBBER)
    scene.save(tmp_path / "scene.toml")
    again = pl.load_scene(tmp_path / "scene.toml").body
    assert (again.nodes == body.nodes).all()
    followed = replace(scene, body=pl.GridBody(turned(BEAM), 0.0083))
    followed.save(tmp_path / "other.toml")
    assert pl.load_scene(tmp_path / "other.toml").body.nodes == pytest.approx(followed.body.nodes)
    with pytest.raises(pl.BadInput, match="axes"):
        pl.GridBody(BEAM, 0.0083, axes="mine")


@pytest.mark.slow
def test_a_film_of_a_turned_body_finds_the_same_material():
    """Rays, tangents and the fit on a turned lattice."""
    _, scene = pair(BEAM, END, 0.012, integrator=pl.GeneralisedAlpha(0.008))
    run = pl.simulate(scene, 10)
    seen = pl.observe(run, cameras=pl.ring_of_cameras(scene, 3), noise=0.0, seed=0)
    fit = pl.reconstruct(scene, seen, unknowns={"youngs_modulus": 7e4, "poisson_ratio": 0.4})
    assert fit.values["youngs_modulus"] == pytest.approx(6e4, rel=1e-3)
    assert fit.values["poisson_ratio"] == pytest.approx(0.45, abs=2e-3)
