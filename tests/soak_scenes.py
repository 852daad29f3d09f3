"""Random ordinary scenes with default settings, and what must hold for each of them.

A scene is a shape, a spacing, a material and one clamp or a floor; everything else is a default.
"""

from dataclasses import dataclass

import numpy as np

import pliant as pl

STEPS = 200
GRAVITY = 9.81


@dataclass(frozen=True)
class Drawn:
    """A scene, and the words and sizes that describe it."""

    scene: pl.Scene
    words: str
    size: float
    clamped: bool


def draw(seed: int) -> Drawn:
    """The scene of a seed."""
    rng = np.random.default_rng([7, seed])
    dim = 2 if rng.random() < 0.2 else 3
    size = 10.0 ** rng.uniform(-2.0, 1.0)
    centre = rng.uniform(-1.0, 1.0, dim) * size
    shape, kind = _shape(rng, dim, size, centre)
    tets = rng.random() < 0.35
    across = rng.uniform(4.0, 8.0) if dim == 2 else rng.uniform(3.5, 5.5)
    if tets:
        body = pl.TetBody(shape, edge_length=1.6 * size / across)
    else:
        body = pl.GridBody(shape, spacing=size / across)
    # ratios as soft matter has them: near 1/2 as often as not
    ratio = float(rng.choice([rng.uniform(0.0, 0.45), 0.5 - 10.0 ** rng.uniform(-4.0, -1.3)]))
    material = pl.Material(
        youngs_modulus=10.0 ** rng.uniform(3.0, 8.0), poisson_ratio=ratio,
        density=10.0 ** rng.uniform(2.0, np.log10(8000.0)),
    )  # fmt: skip
    clamped = bool(rng.random() < 0.6)
    surface = body.surface.positions(body.nodes)
    low, high = surface.min(axis=0), surface.max(axis=0)
    options: dict = {}
    if clamped:
        axis = int(rng.integers(dim))
        place, extent = 0.5 * (low + high), 3.0 * (high - low)
        side = rng.random() < 0.5
        extent[axis] = 0.2 * (high - low)[axis]
        place[axis] = (low if side else high)[axis]
        options["fixed"] = [pl.Fixed(pl.shapes.box(center=tuple(place), size=tuple(extent)))]
    else:
        gap = rng.uniform(0.0, 1.0) * size
        normal = (0.0, 1.0, 0.0)[:dim]
        options["obstacles"] = [pl.Plane(normal=normal, offset=float(low[1] - gap))]
    scene = pl.Scene(body, material, gravity=(0.0, -GRAVITY, 0.0)[:dim], **options)
    words = (
        f"seed {seed}: {kind} of {size:.3g} m, {body!r}, E {material.youngs_modulus:.3g}, "
        f"nu {ratio:.5g}, rho {material.density:.4g}, {'clamped' if clamped else 'dropped'}"
    )
    return Drawn(scene, words, size, clamped)


def _shape(rng: np.random.Generator, dim: int, size: float, centre: np.ndarray):
    s = pl.shapes
    at = tuple(float(x) for x in centre)
    sides = tuple(float(x) for x in size * rng.uniform(0.5, 1.0, dim))
    if dim == 2:
        kind = str(rng.choice(["box", "circle", "turned box"]))
        if kind == "circle":
            return s.circle(radius=0.5 * size, center=at), kind
        box = s.box(center=(0.0, 0.0), size=sides)
        turn = float(rng.uniform(0.0, 1.5)) if kind == "turned box" else 0.0
        return box.rotated(angle=turn).translated(at), kind
    kind = str(rng.choice(["box", "sphere", "cylinder", "torus", "drilled box", "turned box"]))
    if kind == "sphere":
        return s.sphere(radius=0.5 * size, center=at), kind
    if kind == "cylinder":
        return s.cylinder(radius=0.3 * size, height=size).translated(at), kind
    if kind == "torus":
        return s.torus(major=0.35 * size, minor=0.15 * size).translated(at), kind
    box = s.box(center=(0.0, 0.0, 0.0), size=sides)
    if kind == "drilled box":
        return (box - s.cylinder(radius=0.15 * size, height=3.0 * size)).translated(at), kind
    if kind == "turned box":
        axis = tuple(float(x) for x in rng.normal(size=3))
        turn = float(rng.uniform(0.0, 1.5))
        return box.rotated(angle=turn, axis=axis).translated(at), kind
    return box.translated(at), kind


@dataclass(frozen=True)
class Outcome:
    """What a run did: gain as a share of the energy exchanged, and what is wrong, if anything."""

    gain: float
    stopped: str
    inverted: int
    wrong: list[str]


def judge(drawn: Drawn, steps: int = STEPS) -> Outcome:
    """Run a scene and hold it against what must be true of it."""
    stopped = ""
    try:
        run = pl.simulate(drawn.scene, steps)
    except pl.SimulationStopped as stop:
        run, stopped = stop.trajectory, str(stop)
    wrong = []
    e = run.energies
    moved = np.abs(e.kinetic) + np.abs(e.elastic) + np.abs(e.gravity) + np.abs(e.contact)
    scene = drawn.scene  # what gravity gives in one step cannot be told apart by any step
    mass = float(np.mean(scene.material.density)) * scene.body.volume
    of_one_step = 0.5 * mass * (GRAVITY * scene.dt) ** 2
    exchanged = np.maximum(np.maximum.accumulate(moved), of_one_step)
    gain = float(np.max(e.appeared / exchanged))
    if not (np.isfinite(run.displacements).all() and np.isfinite(run.velocities).all()):
        wrong.append("values that are not finite")
    fall = 0.5 * GRAVITY * float(run.times[-1]) ** 2
    # of the surface: nodes outside a body follow their slivers, which may turn about them
    moved = max(float(np.abs(run.surface(k) - run.surface(0)).max()) for k in range(len(run.times)))
    if moved > fall + 5.0 * drawn.size:
        wrong.append(f"moved {moved:.3g} m")
    if gain > GAIN:
        wrong.append(f"gained {gain:.1%} of the energy exchanged")
    inverted = int(run.inverted.max())
    if inverted and not any("inside out" in w for w in run.warnings()):
        wrong.append("cells turned inside out without a word")
    if stopped and "Use " not in stopped and "use " not in stopped:
        wrong.append(f"stopped without a way out: {stopped}")
    return Outcome(gain, stopped, inverted, wrong)


GAIN = 0.05
"""Share of the energy exchanged that may appear from nowhere, errors of the time step included."""
