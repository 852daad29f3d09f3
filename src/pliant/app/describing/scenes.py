"""The built-in scenes, as the same dictionaries that scene files hold."""

import difflib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pliant.app.describing.scene_files import build_scene, read_description
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.geometry.length_units import METRES

DATA_FOLDER_VARIABLE = "PLIANT_DATA"

SCENE = "scene.toml"
"""The scene's file in the folder of a run or a fit."""

NEEDS_FILE = {"bunny": "sdf_bunny_27x31x22.npz", "dragon": "sdf_dragon_56x54x28.npz"}
"""Scenes whose grids are not ours to ship, and the files that hold them."""

Description = dict[str, Any]


@dataclass(frozen=True)
class ShapeFile:
    """A shape's file instead of the scene's own shape; units: of its lengths, None: metres, or
    what its header says.
    """

    path: str
    units: str | None = None

    @classmethod
    def asked(cls, path: str | None, units: str | None = None) -> "ShapeFile | None":
        """From the options of a command."""
        if units is not None:
            if path is None:
                raise BadInput("--shape-units goes with --shape FILE.")
            if units not in METRES:
                raise BadInput(f"--shape-units must be {', '.join(METRES)}, not '{units}'.")
        return None if path is None else cls(path, units)

    def described(self) -> Description:
        """The table of a scene."""
        path = Path(self.path)
        if not path.is_file():
            raise BadInput(f"{path}: there is no such shape file.")
        table = {"file": str(path.absolute())}
        return table if self.units is None else table | {"units": self.units}


_SCENES: dict[str, Callable[..., Description]] = {}


def scene_names() -> list[str]:
    """Names of the built-in scenes that can be built here: some need a file of others."""
    folder = Path(os.environ.get(DATA_FOLDER_VARIABLE) or os.devnull)
    return [n for n in _SCENES if n not in NEEDS_FILE or (folder / NEEDS_FILE[n]).is_file()]


def scene_summary(name: str) -> str:
    """One line about a built-in scene."""
    return (inspect.getdoc(_SCENES[name]) or "").splitlines()[0]


def load_builtin(name: str, *, shape: str | Path | None = None, **options: Any) -> Scene:
    """A built-in scene; options are its own, such as resolution for the cuboid."""
    file = None if shape is None else ShapeFile(str(shape))
    return build_scene(builtin_description(name, shape=file, **options), name=name)


def builtin_description(
    name: str, *, shape: ShapeFile | None = None, **options: Any
) -> Description:
    """The dictionary of a built-in scene, its shape replaced by a file if one is given."""
    make = _SCENES[name]
    known = [*inspect.signature(make).parameters]
    for key in options:
        if key not in known:
            has = f"it takes {', '.join(known)}" if known else "it has none"
            raise BadInput(f"The scene '{name}' has no option '{key}'; {has}.")
    if "file" in known:
        options["file"] = shape
        return make(**options)
    return with_shape(make(**options), shape)


def find_description(
    path_or_name: str | Path, *, shape: ShapeFile | None = None, **options: Any
) -> Description:
    """The dictionary of a built-in scene, of a TOML file, or of the run or fit in a folder."""
    text = str(path_or_name)
    if text in _SCENES:
        return builtin_description(text, shape=shape, **options)
    if options:
        raise BadInput(f"{text}: only built-in scenes have the option '{next(iter(options))}'.")
    try:
        inside = Path(text) / SCENE
        if inside.is_file():
            return with_shape(read_description(inside), shape)
        if text and Path(text).is_dir():
            raise BadInput(f"{text}: is a folder, but holds no scene ({SCENE}).")
        is_file = Path(text).suffix == ".toml" or (text != "" and Path(text).exists())
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        raise BadInput(f"There is no scene '{text}', built in or as a file; {_hint(text)}")
    return with_shape(read_description(text), shape)


def find_builtin(name: str) -> Description:
    """The dictionary of a built-in scene."""
    if name not in _SCENES:
        raise BadInput(f"There is no built-in scene '{name}'; {_hint(name)}")
    return builtin_description(name)


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name, scene_names(), n=1)
    return f"did you mean '{near[0]}'?" if near else f"built in are {', '.join(scene_names())}."


def with_shape(description: Description, file: ShapeFile | None) -> Description:
    """The same scene with the shape of a file."""
    if file is None:
        return description
    if "parts" in description:
        raise BadInput("--shape is for a scene of one body: name the file in parts[0].shape.")
    return description | {"shape": file.described()}


def _scene(name: str) -> Callable[[Callable[..., Description]], Callable[..., Description]]:
    def register(make: Callable[..., Description]) -> Callable[..., Description]:
        _SCENES[name] = make
        return make

    return register


SOFT = {"youngs_modulus": 2000.0, "poisson_ratio": 0.3, "density": 1.0}
DAMPED = {"mass_damping": 0.1, "stiffness_damping": 0.01}


def _box(center: list[float], size: list[float]) -> Description:
    return {"type": "box", "center": center, "size": size}


@_scene("bar")
def bar() -> Description:
    """A bar held at one end swings under its own weight."""
    return {
        "title": "bar",
        "steps": 40,
        "gravity": [0.0, -9.81, 0.0],
        "shape": _box([1.0, 0.0, 0.0], [2.0, 0.5, 0.5]),
        "body": {"kind": "grid", "spacing": 0.0625},
        "material": {**SOFT, **DAMPED},
        "fixed": [{"region": _box([0.0, 0.0, 0.0], [0.02, 0.6, 0.6])}],
        "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
    }


@_scene("torus")
def torus() -> Description:
    """A torus hung from its top swings in tilted gravity (Weiss 2018, chapter 5)."""
    return {
        "title": "torus",
        "steps": 30,
        "gravity": [4.0, -9.0, 3.0],
        "shape": {"type": "torus", "major": 1.0, "minor": 0.35},
        "body": {"kind": "grid", "spacing": 0.0765},  # 9,236 nodes
        "material": {**SOFT, **DAMPED, "density": 1.5},
        "fixed": [{"region": _box([0.0, 1.35, 0.0], [1.0, 0.3, 1.0])}],
        "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
    }


@_scene("cuboid")
def cuboid(resolution: int = 20) -> Description:
    """The benchmark cuboid of Weiss 2018, `resolution` cells per metre, held at one end."""
    if isinstance(resolution, bool) or not isinstance(resolution, int) or resolution < 1:
        raise BadInput(f"The cuboid's resolution must be a whole number above 0, not {resolution}.")
    return {
        "title": f"cuboid, {resolution} cells per metre",
        "steps": 30,
        "gravity": [0.0, -9.81, 0.0],
        "shape": _box([0.0, 1.0, 0.0], [2.58, 0.8, 1.6]),
        "body": {"kind": "grid", "spacing": 1.0 / resolution},
        "material": {**SOFT, **DAMPED},
        "fixed": [{"region": _box([-1.29, 1.0, 0.0], [0.02, 0.9, 1.7])}],
        "integrator": {"type": "Newmark1", "dt": 0.01, "theta": 0.6},
    }


@_scene("bear")
def bear() -> Description:
    """A soft toy, put together from balls and limbs, falls on a slightly sloped floor."""

    def ball(radius: float, *at: float) -> Description:
        return {"type": "sphere", "radius": radius, "center": [*at]}

    def limb(radius: float, start: list[float], end: list[float]) -> Description:
        return {"type": "capsule", "radius": radius, "start": start, "end": end}

    parts: list[Description] = [
        {"type": "ellipsoid", "radii": [0.3, 0.38, 0.26], "center": [0.0, 0.75, 0.0]},
        ball(0.24, 0.0, 1.25, 0.03),
        ball(0.1, 0.0, 1.2, 0.24),
    ]
    for side in (-1.0, 1.0):
        parts += [
            ball(0.09, 0.17 * side, 1.45, 0.0),
            limb(0.09, [0.25 * side, 0.9, 0.05], [0.48 * side, 0.62, 0.12]),
            limb(0.12, [0.16 * side, 0.5, 0.05], [0.22 * side, 0.22, 0.2]),
        ]
    return {
        "title": "bear",
        "steps": 65,
        "gravity": [0.0, -9.81, 0.0],
        "shape": {"type": "union", "shapes": parts, "blend": 0.06},
        "body": {"kind": "grid", "spacing": 0.06},
        "material": {**SOFT, **DAMPED, "density": 2.0},
        "obstacles": [{"type": "plane", "normal": [-0.011, 0.996, -0.091], "offset": 0.0}],
        "integrator": {"type": "Newmark1", "dt": 0.01, "theta": 0.6},
    }


@_scene("bunny")
def bunny(file: ShapeFile | None = None) -> Description:
    """A bunny falls on a slightly sloped floor; its grid comes from a file."""
    return {
        "title": "bunny",
        "steps": 65,
        "gravity": [0.0, -9.81, 0.0],
        "shape": _field("bunny", file),
        "body": {"kind": "grid"},
        "material": {**SOFT, **DAMPED},
        "obstacles": [{"type": "plane", "normal": [-0.011, 0.996, -0.091], "offset": 0.0}],
        "integrator": {"type": "Newmark1", "dt": 0.01, "theta": 0.6},
    }


@_scene("dragon")
def dragon(file: ShapeFile | None = None) -> Description:
    """A dragon held by its head sags and swings; its grid comes from a file."""
    return {
        "title": "dragon",
        "steps": 30,
        "gravity": [0.0, -9.81, 0.0],
        "shape": _field("dragon", file),
        "body": {"kind": "grid"},
        "material": {**SOFT, **DAMPED, "youngs_modulus": 5000.0},
        # the head fills x < -0.2, y > 3.5 of the grid; the hump of the back begins at x = 0
        "fixed": [{"region": _box([-1.5, 4.2, 1.1], [2.6, 1.4, 2.4])}],
        "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
    }


@_scene("drop")
def drop() -> Description:
    """A soft torus drops on a sloped floor, on a grid (Weiss 2018, figure 2.14)."""
    return {
        "title": "drop",
        "steps": 240,
        "gravity": [0.0, -9.81, 0.0],
        "shape": {
            "type": "torus", "major": 0.5, "minor": 0.2,
            "center": [-0.35, 1.05, 0.0], "axis": [0.25, 0.75, 0.6],
        },
        "body": {"kind": "grid", "spacing": 0.06},
        "material": {**SOFT, "density": 4.0, "mass_damping": 0.1, "stiffness_damping": 0.02},
        "obstacles": [{"type": "plane", "normal": [0.2, 1.0, 0.0], "offset": 0.0}],
        # at 0.02 s the bounce depends on the step: grid and mesh part by a third of its height
        "integrator": {"type": "Newmark1", "dt": 0.005, "theta": 0.6},
    }  # fmt: skip


@_scene("drop-mesh")
def drop_mesh() -> Description:
    """The same torus drops as tetrahedra (Weiss 2018, figure 2.15); needs pliant[mesh]."""
    return drop() | {"title": "drop-mesh", "body": {"kind": "tets", "edge_length": 0.1}}


@_scene("elastica")
def elastica(load: float = 5.0) -> Description:
    """A slender 2D cantilever bent far by a tip load, `load` = P L^2 / (E I); for `pliant static`.

    Plane strain with Poisson's ratio 0 and unit thickness: I = 1 / 12. The exact tip deflection
    for load = 5 is v / L = 0.71379 and u / L = 0.38763 (Mattiasson 1981).
    """
    E, L, I = 1e4, 20.0, 1.0 / 12.0  # noqa: E741
    return {
        "title": f"elastica, P L^2 / (E I) = {load:g}",
        "steps": 60,
        "gravity": [0.0, 0.0],
        "shape": _box([L / 2.0, 0.0], [L, 1.0]),
        "body": {"kind": "grid", "spacing": 0.25},
        "material": {
            "youngs_modulus": E, "poisson_ratio": 0.0, "density": 1.0,
            "mass_damping": 0.1, "stiffness_damping": 0.01,
        },
        "fixed": [{"region": _box([0.0, 0.0], [2e-4, 1.1])}],
        "loads": [
            {
                "type": "traction", "region": _box([L, 0.0], [2e-4, 1.1]),
                "force": [0.0, -load * E * I / L**2],
            },
        ],
        "integrator": {"type": "Newmark1", "dt": 0.05, "theta": 0.6},
    }  # fmt: skip


def _field(name: str, file: ShapeFile | None) -> Description:
    """The scene's grid: the file given, else the standard one in the data folder."""
    standard = NEEDS_FILE[name]
    if file is not None:
        return file.described()
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    if not folder:
        raise BadInput(
            f"The scene '{name}' takes its grid from a file: give --shape FILE, or set "
            f"{DATA_FOLDER_VARIABLE} to the folder that holds {standard}."
        )
    path = Path(folder) / standard
    if not path.is_file():
        raise BadInput(
            f"{path}: there is no such file; set {DATA_FOLDER_VARIABLE} to the folder that "
            "holds it, or give --shape FILE."
        )
    return {"file": str(path.absolute())}
