"""Steps whose frames stay those of the predicted displacement: one linear solve each."""

from dataclasses import replace

from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.scene import Scene
from pliant.dynamics.step_problem import StepProblem


def frozen_model(scene) -> ImplicitModel:
    """The scene with frozen frames, unless it says something else than the default."""
    if not isinstance(scene, Scene):  # several bodies have no frozen frames
        return scene.make_model()
    frozen = scene.law is None and scene.model == "corotated"
    return ImplicitModel(replace(scene, model="corotated-frozen") if frozen else scene)


def prepared(model, state):
    """b of the step that starts at a state; its matrix is the model's."""
    return StepProblem(model, state, model.scene.integrator).prepare()
