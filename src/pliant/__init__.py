"""Elastic bodies, simulated and identified from depth cameras.

The public names; everything else is an implementation detail of its layer. They are imported when
they are first asked for: `import pliant` alone loads neither Warp nor SciPy.
"""

import sys
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pliant.core import later
from pliant.core.shown import provide

if TYPE_CHECKING:  # for editors and type checkers; the same names as in _HOMES
    from pliant.core.errors import BadInput, MissingExtra, PliantError, SolverFailure
    from pliant.core.launch import set_device, set_threads
    from pliant.dynamics.energies import Energies
    from pliant.dynamics.integrators import (
        HHT,
        CentralDifferences,
        GeneralisedAlpha,
        ImplicitEuler,
        LinearAcceleration,
        Newmark1,
        Newmark2,
        Newmark3,
    )
    from pliant.dynamics.loads import BodyForce, Fixed, Motion, PointLoad, Pressure, Traction
    from pliant.dynamics.modes import Modes, modes
    from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
    from pliant.dynamics.parts.part import Part
    from pliant.dynamics.point_mass import PointMass
    from pliant.dynamics.scene import Scene
    from pliant.dynamics.simulate import SimulationStopped, simulate
    from pliant.dynamics.simulation import Simulation, Snapshot
    from pliant.dynamics.small_model import SmallWorld
    from pliant.dynamics.start import Start
    from pliant.dynamics.statics import solve_static
    from pliant.dynamics.trajectory import Trajectory
    from pliant.dynamics.unloading import unloaded
    from pliant.dynamics.worlds import world
    from pliant.fem import laws
    from pliant.fem.bodies.body import Body
    from pliant.fem.bodies.grid_body import GridBody
    from pliant.fem.bodies.tet_body import TetBody
    from pliant.fem.laws import energy
    from pliant.fem.material import Branch, Material
    from pliant.fem.material_regions import MaterialRegion
    from pliant.geometry import shapes
    from pliant.geometry.load import load_shape
    from pliant.inverse.curves.curve_fit import CurveFit, CurveFits, fit_curve
    from pliant.inverse.fields.field_penalty import FieldPenalty
    from pliant.inverse.fitting.fit import Fit
    from pliant.inverse.fitting.prediction import Prediction, predict
    from pliant.inverse.fitting.reconstruct import reconstruct
    from pliant.inverse.joint.experiment import Experiment
    from pliant.inverse.joint.opinion import Opinion
    from pliant.inverse.measuring.level_set_cost import LevelSets
    from pliant.inverse.measuring.measures import NodeMotions
    from pliant.inverse.parameters.priors import Prior
    from pliant.observe.camera import Camera, ring_of_cameras
    from pliant.observe.curve_files import Curve, load_curve
    from pliant.observe.files import load_observations, save_observations
    from pliant.observe.fusion import Scan, fuse
    from pliant.observe.observations import Observations, observe
    from pliant.observe.track_files import load_tracks, save_tracks
    from pliant.observe.tracks import TrackedPoints

__version__ = "0.1.0"

_HOMES = {
    "core.errors": "BadInput MissingExtra PliantError SolverFailure",
    "core.launch": "set_device set_threads",
    "dynamics.energies": "Energies",
    "dynamics.integrators": "CentralDifferences GeneralisedAlpha HHT ImplicitEuler "
    "LinearAcceleration Newmark1 Newmark2 Newmark3",
    "dynamics.loads": "BodyForce Fixed Motion PointLoad Pressure Traction",
    "dynamics.modes": "Modes modes",
    "dynamics.obstacles": "ContactLaw Obstacle Plane",
    "dynamics.parts.part": "Part",
    "dynamics.point_mass": "PointMass",
    "dynamics.scene": "Scene",
    "dynamics.simulate": "SimulationStopped simulate",
    "dynamics.simulation": "Simulation Snapshot",
    "dynamics.small_model": "SmallWorld",
    "dynamics.start": "Start",
    "dynamics.statics": "solve_static",
    "dynamics.trajectory": "Trajectory",
    "dynamics.unloading": "unloaded",
    "dynamics.worlds": "world",
    "fem.bodies.body": "Body",
    "fem.bodies.grid_body": "GridBody",
    "fem.laws": "energy",
    "fem.material": "Branch Material",
    "fem.material_regions": "MaterialRegion",
    "fem.bodies.tet_body": "TetBody",
    "geometry.load": "load_shape",
    "inverse.curves.curve_fit": "CurveFit CurveFits fit_curve",
    "inverse.fields.field_penalty": "FieldPenalty",
    "inverse.fitting.fit": "Fit",
    "inverse.fitting.prediction": "Prediction predict",
    "inverse.joint.experiment": "Experiment",
    "inverse.joint.opinion": "Opinion",
    "inverse.measuring.level_set_cost": "LevelSets",
    "inverse.measuring.measures": "NodeMotions",
    "inverse.parameters.priors": "Prior",
    "inverse.fitting.reconstruct": "reconstruct",
    "observe.camera": "Camera ring_of_cameras",
    "observe.curve_files": "Curve load_curve",
    "observe.files": "load_observations save_observations",
    "observe.fusion": "Scan fuse",
    "observe.observations": "Observations observe",
    "observe.track_files": "load_tracks save_tracks",
    "observe.tracks": "TrackedPoints",
}
"""Where the public names are at home."""

_MODULES = {"laws": "fem.laws", "shapes": "geometry.shapes"}
"""Public names that are modules."""

_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def load_scene(path) -> "Scene":
    """A scene from a TOML file, or a built-in one by name."""
    from pliant.app.describing.scene_files import load_scene as load  # the file format is the app's

    return load(path)


def compress(scene, seen, path, *, error: float = 1e-3, **options):
    """A depth film as `scene` and what it leaves, in a file: see app.folders.compressed_film."""
    from pliant.app.folders.compressed_film import compress as write

    return write(scene, seen, path, error=error, **options)


def play(path) -> "Observations":
    """The film that `compress` wrote: its scene simulated, and what that leaves added."""
    from pliant.app.folders.compressed_film import play as read

    return read(path).seen


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used."""
    if name in _MODULES:
        value = import_module(f"pliant.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(import_module(f"pliant.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'pliant' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Facade(ModuleType):
    """The package: a folder named like a public name (`observe`) does not hide it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOME and isinstance(value, ModuleType):
            return  # the import of a submodule sets it in its package
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
provide(lambda: import_module("pliant.app.pictures.views"))  # plot, HTML and progress of records
for _folder in ("particles", "reduced"):  # words that `model` may be
    later.provide("models", partial(import_module, f"pliant.{_folder}"))

__all__ = [
    "BadInput", "Body", "BodyForce", "Branch", "Camera", "CentralDifferences", "ContactLaw",
    "Curve", "CurveFit", "CurveFits", "Energies", "Experiment", "FieldPenalty", "Fit", "Fixed",
    "GeneralisedAlpha", "GridBody", "HHT", "ImplicitEuler", "LevelSets", "LinearAcceleration",
    "Material", "MaterialRegion", "MissingExtra", "Modes", "Motion", "Newmark1", "Newmark2",
    "Newmark3", "NodeMotions", "Observations", "Obstacle", "Opinion", "Part", "Plane",
    "PliantError", "PointLoad", "PointMass", "Prediction", "Pressure", "Prior", "Scan", "Scene",
    "Simulation", "SimulationStopped", "SmallWorld", "Snapshot", "SolverFailure", "Start",
    "TetBody", "TrackedPoints", "Traction", "Trajectory", "compress", "energy", "fit_curve", "fuse",
    "laws", "load_curve", "load_observations", "load_scene", "load_shape", "load_tracks", "modes",
    "observe", "play", "predict", "reconstruct", "ring_of_cameras", "save_observations",
    "save_tracks", "set_device", "set_threads", "shapes", "simulate", "solve_static", "unloaded",
    "world",
]  # fmt: skip
