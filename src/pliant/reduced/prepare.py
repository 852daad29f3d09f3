"""Reductions of scenes, made when they are first needed and kept with the body.

A reduction belongs to a body with its walls, its law and the numbers of its model: two scenes that
differ in anything else, moduli included, share it, so that a fit's every trial has the same basis.
"""

from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from pliant.dynamics.scene import Scene
from pliant.reduced.reduction import Reduction, all_points

_kept: WeakKeyDictionary[Any, dict[str, Reduction]] = WeakKeyDictionary()


def prepared(scene: Scene) -> Reduction:
    """The reduction that a scene's numbers ask for."""
    own = _kept.setdefault(scene.body, {})
    key = _key(scene)
    if key not in own:
        begin = perf_counter()
        made = _made(scene)
        made.report["seconds"] = perf_counter() - begin
        own[key] = made
    return own[key]


def _key(scene: Scene) -> str:
    law = scene.constitution.law
    assert law is not None
    walls = [(repr(f.place.to_dict()), f.axes, f.stiffness) for f in scene.fixed]
    regions = scene.material.regions
    return repr((scene.model, scene.numbers, scene.dilatation, law.name, walls, regions))


def _made(scene: Scene) -> Reduction:
    from pliant.reduced.modal_basis import modal_span, pod_span

    own: Any = scene.numbers
    if scene.model == "modal":
        if own.snapshots:
            span = pod_span(scene, own.snapshots, own.most)
        else:
            span = modal_span(scene, own.modes, own.order, own.most)
        return Reduction(span, all_points(scene, span))
    from pliant.reduced.domains import domain_reduction

    return domain_reduction(scene, own)
