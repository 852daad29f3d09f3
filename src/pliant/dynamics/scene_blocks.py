"""The numbers of a scene by name: how each is set, and how a model's parameters move with it.

A block is what a user calls a quantity (youngs_modulus, gravity, ground_offset); a model computes
with moduli, masses and the like. From the one to the other is written here once, with its
derivative. A new quantity that may be fitted is a new Block, entered in BLOCKS.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from pliant.complexstep.derivatives import STEP, mixed_partial
from pliant.core.errors import BadInput
from pliant.dynamics.loads import AXES, PLACE, place_name
from pliant.dynamics.material_blocks import (
    BRANCH_UNITS,
    LAW_PREFIX,
    BranchNumbers,
    DampingRatios,
    Density,
    MaterialBlock,
    PoissonRatio,
    YoungsModulus,
)
from pliant.dynamics.model import Block, Parameters
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene, vector3
from pliant.fem.laws.law import Law


class VectorBlock(Block):
    """gravity, initial_velocity or initial_spin."""

    of_material = False

    def get(self, scene):
        return np.asarray(getattr(scene, self.name), float)

    def labels(self, scene, count):
        axes = "xyz" if self.name == "initial_spin" else "xyz"[: scene.dim]
        return tuple(f"{self.name}.{a}" for a in axes)

    def put(self, scene, value):
        return replace(scene, **{self.name: tuple(float(c) for c in value)})

    def sizes(self, value, scene, duration):
        least = 1.0
        if self.name != "gravity":
            least = (_extent(scene) if self.name == "initial_velocity" else 1.0) / duration
        return np.full(len(value), max(float(np.linalg.norm(value)), least))

    def push(self, model, change):
        d = vector3(self.name, change.tolist())
        if self.name == "gravity":
            return Parameters(gravity=d)
        field = d if self.name == "initial_velocity" else np.cross(d, model.arms())
        return Parameters(velocity=field * model.boundary.free)


class StartBlock(Block):
    """Amplitudes or velocities of the modes in which a body starts."""

    of_material = False

    def check(self, scene: Scene) -> None:
        if not scene.begin.modes:
            raise BadInput(
                f"'{self.name}' is unknown, but the scene does not start in a state: give "
                'Scene(start=Start("state", modes=...)).'
            )

    def get(self, scene):
        return np.asarray(getattr(scene.begin, self._part), float) if scene.begin.modes else None

    @property
    def _part(self) -> str:
        return self.name.removeprefix("start_")

    def labels(self, scene, count):
        return _counted(self.name, count)

    def sizes(self, value, scene, duration):
        least = 1e-3 * _extent(scene) / (1.0 if self._part == "amplitudes" else duration)
        return np.full(len(value), max(float(np.abs(value).max()), least))

    def put(self, scene, value):
        start = replace(scene.begin, **{self._part: tuple(float(c) for c in value)})
        return replace(scene, start=start)

    def push(self, model, change):
        return Parameters({self.name: np.asarray(change, float)})


class GravityDirection(Block):
    """Where gravity points; its strength stays the scene's."""

    of_material = False

    excludes = ("gravity",)

    def get(self, scene):
        strength = np.linalg.norm(scene.gravity)
        return np.asarray(scene.gravity, float) / strength if strength else None

    def labels(self, scene, count):
        return _counted(self.name, scene.dim - 1)

    def put(self, scene, value):
        return replace(scene, gravity=tuple(float(np.linalg.norm(scene.gravity)) * value))

    def push(self, model, change):
        return Parameters(gravity=float(np.linalg.norm(model.scene.gravity)) * change)


class Ground(Block):
    """Normal or offset of the first plane."""

    of_material = False

    def get(self, scene):
        planes = [o for o in scene.obstacles if isinstance(o, Plane)]
        return np.asarray(getattr(planes[0], self._part), float) if planes else None

    @property
    def _part(self) -> str:
        return self.name.removeprefix("ground_")

    def labels(self, scene, count):
        if self._part == "offset":
            return (self.name,)
        return _counted(self.name, scene.dim - 1)

    def sizes(self, value, scene, duration):
        return np.full(len(value), _extent(scene))

    def put(self, scene, value):
        k = _first_plane(scene)
        own = float(value[0]) if self._part == "offset" else tuple(value)
        obstacles = list(scene.obstacles)
        obstacles[k] = replace(obstacles[k], **{self._part: own})
        return replace(scene, obstacles=tuple(obstacles))

    def push(self, model, change):
        every = np.zeros((len(model.scene.obstacles), len(change)))
        every[_first_plane(model.scene)] = change
        return Parameters({self._part: every[:, 0] if self._part == "offset" else every})


class ContactStiffness(Block):
    """Stiffness of the contact springs."""

    of_material = False

    def get(self, scene):
        return scene.contact.stiffness

    def put(self, scene, value):
        return replace(scene, contact=replace(scene.contact, stiffness=float(value[0])))


class LawParameter(Block):
    """One parameter of the scene's law, uniform over the body."""

    excludes = ("youngs_modulus", "poisson_ratio")

    @property
    def _parameter(self) -> str:
        return self.name.removeprefix(LAW_PREFIX)

    def check(self, scene: Scene) -> None:
        own, law = scene.constitution.parameters(), scene.constitution.law
        if law is None or not own:
            raise BadInput(
                f"'{self.name}' is unknown, but the scene has no law: give Scene(law=...)."
            )
        if self._parameter not in own:
            known = ", ".join(LAW_PREFIX + n for n in own)
            raise BadInput(
                f"The law '{law.name}' has no parameter '{self._parameter}'. Known: {known}."
            )

    def labels(self, scene, count):
        if count != 1:
            raise BadInput(f"The start of {self.name} must be one finite number.")
        return (self.name,)

    def get(self, scene):
        made = scene.constitution
        return None if made.follows_moduli else made.law.values[self._parameter]

    def put(self, scene, value):
        law = scene.constitution.law
        return replace(scene, law=law.replace(**{self._parameter: float(value[0])}))

    def push(self, model, change):
        """The law's parameter, and the small-strain moduli that follow it."""
        cells, law, d = len(model.lam), model.law, float(change[0])
        j = list(law.values).index(self._parameter)
        table = np.zeros((cells, len(law.values)))
        table[:, j] = d
        by_lam, by_mu = moduli_slopes(law, cells)
        p = Parameters(law=table, lam=d * by_lam[:, j], mu=d * by_mu[:, j])
        if model.contact is not None and model.contact.stiffness_per_modulus > 0.0:
            l, m = model.lam, model.mu
            # E = mu (3 lambda + 2 mu) / (lambda + mu)
            by_l = m**2 / (l + m) ** 2
            by_m = (3.0 * l**2 + 4.0 * l * m + 2.0 * m**2) / (l + m) ** 2
            mean = float(np.mean(by_l * p["lam"] + by_m * p["mu"]))
            p["contact_stiffness"] = model.contact.stiffness_per_modulus * mean
        return p


class WallStiffness(Block):
    """Stiffnesses of the clamps that give, in the order of the scene."""

    of_material = False

    def check(self, scene):
        if not self._of(scene):
            raise BadInput(
                f"'{self.name}' is unknown, but no clamp gives: give one a stiffness [Pa/m], "
                "Fixed(region, stiffness=...)."
            )

    def _of(self, scene) -> list[float]:
        return [f.stiffness for f in scene.fixed if f.stiffness is not None]

    def labels(self, scene, count):
        if count != len(self._of(scene)):
            raise BadInput(
                f"{self.name} is a number for every clamp that gives, {len(self._of(scene))}, "
                f"not {count}."
            )
        return super().labels(scene, count)

    def get(self, scene):
        values = self._of(scene)
        return np.array(values) if len(values) > 1 else next(iter(values), None)

    def put(self, scene, value):
        new = iter(value)
        fixed = [
            f if f.stiffness is None else replace(f, stiffness=float(next(new)))
            for f in scene.fixed
        ]
        return replace(scene, fixed=fixed)

    def push(self, model, change):
        return Parameters({self.name: np.array(change, float)})


class WallPlace(Block):
    """How far a held region sits beside where it is described, along one axis [m]."""

    of_material = False

    def _of(self) -> tuple[int, int]:
        """The region's number and the axis."""
        number, axis = self.name.removeprefix(PLACE).split(".")
        return int(number), AXES.index(axis)

    def check(self, scene):
        number, _ = self._of()
        if not scene.body.is_grid and scene.fixed[number].stiffness is None:
            raise BadInput(
                f"'{self.name}' is unknown, but a mesh holds whole nodes, which do not change with "
                "a little way: take a grid, or give the clamp a stiffness."
            )

    def labels(self, scene, count):
        if count != 1:
            raise BadInput(f"The start of {self.name} must be one finite number.")
        return (self.name,)

    def get(self, scene):
        number, axis = self._of()
        shift = scene.fixed[number].shift
        return shift[axis] if shift else 0.0

    def put(self, scene, value):
        number, axis = self._of()
        fixed = list(scene.fixed)
        shift = list(fixed[number].shift or (0.0,) * scene.dim)
        shift[axis] = float(value[0])
        fixed[number] = replace(fixed[number], shift=tuple(shift))
        return replace(scene, fixed=fixed)

    def scales(self, scene, count):
        """What a free coordinate of one means: a tenth of the body."""
        return np.full(count, 0.1 * _extent(scene))

    def sizes(self, value, scene, duration):
        return np.full(len(value), _extent(scene))


BLOCKS: dict[str, Block] = {
    b.name: b
    for b in (
        YoungsModulus("youngs_modulus", "Pa", "positive"),
        PoissonRatio("poisson_ratio", "", "ratio"),
        Density("density", "kg/m^3", "positive"),
        MaterialBlock("mass_damping", "1/s", "positive"),
        MaterialBlock("stiffness_damping", "s", "positive"),
        DampingRatios("damping_ratios", "", "positive", 2),
        VectorBlock("gravity", "m/s^2", "plain", 3),
        GravityDirection("gravity_direction", "", "direction", 3),
        Ground("ground_normal", "", "direction", 3),
        Ground("ground_offset", "m", "plain"),
        ContactStiffness("contact_stiffness", "Pa/m", "positive"),
        WallStiffness("wall_stiffness", "Pa/m", "positive"),
        VectorBlock("initial_velocity", "m/s", "plain", 3),
        VectorBlock("initial_spin", "rad/s", "plain", 3),
        StartBlock("start_amplitudes", "m", "plain"),
        StartBlock("start_velocities", "m/s", "plain"),
    )
}
"""What may be unknown in every scene; parameters of its law and its branches come to these."""


def scene_blocks(scene: Scene) -> Mapping[str, Block]:
    """What may be unknown in a scene, by name."""
    law = {
        LAW_PREFIX + name: LawParameter(LAW_PREFIX + name, unit, "signed")
        for name, unit in scene.constitution.parameters().items()
    }
    count = len(scene.material.branches)
    branches = {
        name: BranchNumbers(name, unit, "positive", count)
        for name, unit in BRANCH_UNITS.items()
        if count
    }
    own = scene.constitution.blocks()
    return _Blocks(BLOCKS | law | branches | _region_blocks(scene) | _place_blocks(scene) | own)


def _place_blocks(scene: Scene) -> dict[str, Block]:
    """The places of the held regions."""
    names = [place_name(n, axis) for n in range(len(scene.fixed)) for axis in AXES[: scene.dim]]
    return {name: WallPlace(name, "m", "scaled") for name in names}


def _region_blocks(scene: Scene) -> dict[str, Block]:
    """Moduli and ratios that regions have of their own; no density, see Density."""
    kinds = {"youngs_modulus": YoungsModulus, "poisson_ratio": PoissonRatio}
    return {
        (name := f"regions.{i}.{number}"): kind(name, BLOCKS[number].unit, BLOCKS[number].chart)
        for i, region in enumerate(scene.material.regions)
        for number, kind in kinds.items()
        if getattr(region, number) is not None
    }


class _Blocks(dict[str, Block]):
    """What the law or the material lacks is found, too: its check says what they have."""

    def get(self, name: str, default: Block | None = None) -> Block | None:
        if name not in self and name.startswith(LAW_PREFIX):
            return LawParameter(name, "", "signed")
        if name not in self and name in BRANCH_UNITS:
            return BranchNumbers(name, BRANCH_UNITS[name], "positive")
        return super().get(name, default)


def moduli_slopes(law: Law, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """d lambda / d p and d mu / d p, (cells, parameters) each, by complex steps."""
    names = list(law.values)
    lam, mu = np.zeros((cells, len(names))), np.zeros((cells, len(names)))
    for j, name in enumerate(names):
        if law.energy.lame is not None:
            record = SimpleNamespace(
                **{n: np.asarray(v, complex) + (1j * STEP if n == name else 0.0)
                   for n, v in law.values.items()}
            )  # fmt: skip
            by = [np.imag(x) / STEP for x in law.energy.lame(record)]
        else:
            by = _derived(law, name)
        lam[:, j], mu[:, j] = by
    current = np.broadcast_to(np.asarray(law.lame()[0], float), (cells,))
    lam[current <= 0.0] = 0.0  # the model does not go below zero
    return lam, mu


def _derived(law: Law, name: str):
    def psi(a, b, p):
        F = np.zeros((3, 3), object)
        for i, x in enumerate((a, b, a * 0.0 + 1.0)):
            F[i, i] = x
        record = law.record()
        setattr(record, name, p)
        return law.energy.value(F, record)

    at = [np.ones(1), np.ones(1), np.atleast_1d(np.asarray(law.values[name], float))]
    cross = mixed_partial(psi, at, [1, 1, 1])
    own = mixed_partial(psi, at, [2, 0, 1])
    return cross, 0.5 * (own - cross)


def _counted(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}.{k + 1}" for k in range(count))


def _first_plane(scene: Scene) -> int:
    for k, o in enumerate(scene.obstacles):
        if isinstance(o, Plane):
            return k
    raise BadInput("The ground is unknown, but the scene has no plane: add obstacles=[Plane()].")


def _extent(scene: Scene) -> float:
    """Largest side of the body's box [m]."""
    return float(np.ptp(scene.body.nodes, axis=0).max())
