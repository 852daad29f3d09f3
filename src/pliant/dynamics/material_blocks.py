"""The numbers of a body's material by name: how each is set, how a model's parameters follow it.

Of the whole body, of one of its regions (regions.2.youngs_modulus), of viscoelastic branches.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.model import Block, Parameters
from pliant.dynamics.scene import Scene
from pliant.fem.material_regions import NOBODY, owners

REGION = re.compile(r"regions\.(\d+)\.")
"""Numbers of a region of the material are named regions.<which>.<number>."""

LAW_PREFIX = "law."
"""Parameters of a material law are named law.<parameter>."""


class MaterialBlock(Block):
    """A number of the material, uniform unless its value is one per cell.

    With regions it is that of the body outside of them; regions.2.youngs_modulus is a region's.
    """

    @property
    def number(self) -> str:
        """What it is of the body or of a region."""
        return self.name.rpartition(".")[2]

    @property
    def region(self) -> int:
        """Whose number it is: NOBODY for the body's own."""
        found = REGION.match(self.name)
        return NOBODY if found is None else int(found.group(1))

    def get(self, scene: Scene):
        own = scene.material if self.region == NOBODY else scene.material.regions[self.region]
        return getattr(own, self.number)

    def put(self, scene: Scene, value: np.ndarray) -> Scene:
        change = {self.number: float(value[0]) if len(value) == 1 else value}
        material = scene.material
        if self.region != NOBODY:
            regions = list(material.regions)
            regions[self.region] = replace(regions[self.region], **change)
            change = {"regions": regions}
        return replace(scene, material=replace(material, **change))

    def held(self, model: Any) -> np.ndarray | float:
        """1 in the cells that have this number, else 0."""
        regions = model.scene.material.regions
        if not regions:
            return 1.0
        return (owners(model.scene.body, regions, self.number) == self.region).astype(float)


class YoungsModulus(MaterialBlock):
    """Uniform Young's modulus, or one per cell."""

    def check(self, scene: Scene) -> None:
        _require_moduli(scene, self.name)

    def push(self, model, change):
        change = change * self.held(model)
        relative = change / model.material.youngs_modulus
        p = Parameters(lam=model.lam * relative, mu=model.mu * relative)
        if model.contact is not None:  # follows the mean modulus
            share = model.contact.stiffness_per_modulus
            p["contact_stiffness"] = share * float(np.mean(change))
        return p

    def pull(self, model, dual, size):
        if size == 1:
            return super().pull(model, dual, size)
        E = model.material.youngs_modulus
        out = (dual["lam"] * model.lam + dual["mu"] * model.mu) / E
        if model.contact is not None:
            out = out + dual["contact_stiffness"] * model.contact.stiffness_per_modulus / size
        return out * self.held(model)


class PoissonRatio(MaterialBlock):
    """Poisson's ratio."""

    def check(self, scene: Scene) -> None:
        _require_moduli(scene, self.name)

    def sizes(self, value, scene, duration):
        return np.maximum(np.abs(value), 0.1)

    def push(self, model, change):
        nu = model.material.poisson_ratio
        E = model.mu * 2.0 * (1.0 + nu)
        by_lam = E * (1 + 2 * nu**2) / ((1 + nu) ** 2 * (1 - 2 * nu) ** 2)
        change = change * self.held(model)
        return Parameters(lam=change * by_lam, mu=-change * E / (2.0 * (1 + nu) ** 2))


class Density(MaterialBlock):
    """Uniform density."""

    def check(self, scene: Scene) -> None:
        if np.ndim(scene.cell_material.density):
            raise BadInput(
                "'density' is unknown, but differs from cell to cell: only one density throughout "
                "can be found."
            )

    def push(self, model, change):
        own = model.masses - model.attached
        return Parameters(mass=own * float(change[0]) / model.material.density)


class DampingRatios(Block):
    """Damping ratios of motions at `damping_frequencies`, in place of Rayleigh's coefficients.

    ratio_i = (alpha / w_i + beta w_i) / 2 with w = 2 pi f; the two ratios fix alpha and beta.
    """

    excludes = ("mass_damping", "stiffness_damping")

    def matrix(self, scene: Scene) -> np.ndarray:
        """(alpha, beta) per ratio, (2, 2)."""
        w = 2.0 * np.pi * np.asarray(damping_frequencies(scene))
        return np.linalg.inv(np.stack([0.5 / w, 0.5 * w], axis=1))

    def labels(self, scene, count):
        if count != 2:
            raise BadInput("damping_ratios are two numbers, one for each frequency.")
        return tuple(f"damping_ratio@{f:.3g}Hz" for f in damping_frequencies(scene))

    def get(self, scene):
        w = 2.0 * np.pi * np.asarray(damping_frequencies(scene))
        ratios = 0.5 * (scene.material.mass_damping / w + scene.material.stiffness_damping * w)
        return ratios if (ratios > 0.0).all() else None

    def put(self, scene, value):
        alpha, beta = self.matrix(scene) @ value
        if alpha < 0.0 or beta < 0.0:  # not a Rayleigh damping: an optimiser takes a shorter step
            raise SolverFailure(
                f"Damping ratios {value[0]:.3g} and {value[1]:.3g} need a negative "
                "Rayleigh coefficient: start with ratios closer to each other."
            )
        damped = replace(scene.material, mass_damping=float(alpha), stiffness_damping=float(beta))
        return replace(scene, material=damped)

    def push(self, model, change):
        alpha, beta = self.matrix(model.scene) @ change
        return Parameters(mass_damping=float(alpha), stiffness_damping=float(beta))


class BranchNumbers(Block):
    """Moduli or times of the material's viscoelastic branches, one number each."""

    @property
    def _part(self) -> str:
        return {"branch_moduli": "modulus", "branch_times": "time"}[self.name]

    def check(self, scene: Scene) -> None:
        if not scene.material.branches:
            raise BadInput(
                f"'{self.name}' is unknown, but the material has no branches: give "
                "Material(branches=[Branch(modulus=..., time=...)])."
            )

    def labels(self, scene, count):
        if count != len(scene.material.branches):
            raise BadInput(
                f"{self.name} are as many numbers as the material has branches, "
                f"{len(scene.material.branches)}, not {count}."
            )
        return super().labels(scene, count)

    def get(self, scene):
        values = [getattr(b, self._part) for b in scene.material.branches]
        return np.array(values) if len(values) > 1 else next(iter(values), None)

    def put(self, scene, value):
        own = zip(scene.material.branches, value, strict=True)
        branches = [replace(branch, **{self._part: float(v)}) for branch, v in own]
        return replace(scene, material=replace(scene.material, branches=branches))

    def push(self, model, change):
        return Parameters({self.name: np.array(change, float)})


BRANCH_UNITS = {"branch_moduli": "Pa", "branch_times": "s"}


def damping_frequencies(scene: Scene) -> tuple[float, float]:
    """Frequencies [Hz] at which `damping_ratios` are stated: periods of 100 and of 20 steps."""
    return 0.01 / scene.dt, 0.05 / scene.dt


def _require_moduli(scene: Scene, name: str) -> None:
    """Refuse a modulus of a body whose law has numbers of its own: nothing would depend on it."""
    made = scene.constitution
    if not made.follows_moduli and made.law is not None:
        known = ", ".join(LAW_PREFIX + n for n in made.parameters())
        raise BadInput(
            f"'{name}' is unknown, but the law '{made.law.name}' has numbers of its own and does "
            f"not depend on it: name its parameters ({known}), or give the law by its name."
        )
