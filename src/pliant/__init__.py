"""Elastic bodies, simulated and identified from depth cameras.

The public names; everything else is an implementation detail of its layer.
"""

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
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import SimulationStopped, simulate
from pliant.dynamics.simulation import Simulation, Snapshot
from pliant.dynamics.statics import solve_static
from pliant.dynamics.trajectory import Trajectory
from pliant.fem import laws
from pliant.fem.body import Body
from pliant.fem.grid_body import GridBody
from pliant.fem.laws import energy
from pliant.fem.material import Material
from pliant.fem.tet_body import TetBody
from pliant.geometry import shapes
from pliant.geometry.load import load_shape
from pliant.inverse.field_penalty import FieldPenalty
from pliant.inverse.fit import Fit
from pliant.inverse.level_set_cost import LevelSets
from pliant.inverse.measures import NodeMotions
from pliant.inverse.priors import Prior
from pliant.inverse.reconstruct import reconstruct
from pliant.observe.camera import Camera, ring_of_cameras
from pliant.observe.files import load_observations, save_observations
from pliant.observe.observations import Observations, observe

__version__ = "0.1.0"


def load_scene(path) -> Scene:
    """A scene from a TOML file, or a built-in one by name."""
    from pliant.app.scene_files import load_scene as load  # the file format is the app's

    return load(path)


__all__ = [
    "BadInput", "Body", "BodyForce", "Camera", "CentralDifferences", "ContactLaw",
    "Energies", "FieldPenalty", "Fit", "Fixed", "GeneralisedAlpha", "GridBody", "HHT",
    "ImplicitEuler", "LevelSets",
    "LinearAcceleration", "Material", "MissingExtra", "Modes", "Motion", "Newmark1", "Newmark2",
    "Newmark3", "NodeMotions", "Observations", "Obstacle", "Plane", "PliantError", "PointLoad",
    "Pressure", "Prior", "Scene", "Simulation", "SimulationStopped", "Snapshot", "SolverFailure",
    "TetBody", "Traction", "Trajectory", "energy", "laws", "load_observations", "load_scene",
    "load_shape", "modes", "observe", "reconstruct", "ring_of_cameras", "save_observations",
    "set_device", "set_threads", "shapes", "simulate", "solve_static",
]  # fmt: skip
