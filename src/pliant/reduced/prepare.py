"""Reductions of scenes, made when they are first needed and kept with the body.

A reduction belongs to a body with its walls, its law and the numbers of its model: two scenes that
differ in anything else, moduli included, share it, so that a fit's every trial has the same basis.
"""

from dataclasses import replace
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from pliant.dynamics.scene import Scene
from pliant.reduced.one_thread import one_thread
from pliant.reduced.point_forces import PointForces
from pliant.reduced.reduction import Domains, Reduction, all_points
from pliant.reduced.spans import Span
from pliant.reduced.supports_of_span import walls_told

_kept: WeakKeyDictionary[Any, dict[str, Reduction]] = WeakKeyDictionary()


def prepared(scene: Scene) -> Reduction:
    """The reduction that a scene's numbers ask for."""
    own = _kept.setdefault(scene.body, {})
    key = _key(scene)
    if key not in own:
        begin = perf_counter()
        with one_thread():
            made = _made(scene)
        made.report["seconds"] = perf_counter() - begin
        own[key] = made
    return own[key]


def _key(scene: Scene) -> str:
    law = scene.constitution.law
    assert law is not None
    walls = walls_told(scene)
    regions = scene.material.regions
    return repr((scene.model, scene.numbers, scene.dilatation, law.name, walls, regions))


def _made(scene: Scene) -> Reduction:
    own: Any = scene.numbers
    span, fading = spanned(scene)
    segments = None if fading is None else fading.segments
    whole = Reduction(span, all_points(scene, span, segments), {}, fading)
    if own.cubature == 0.0:
        return whole
    return with_cubature(scene, whole, own.cubature)


def spanned(scene: Scene) -> tuple[Span, Domains | None]:
    """The span that a scene's numbers ask for, and its domains if it has any."""
    from pliant.reduced.domains import domain_span
    from pliant.reduced.modal_basis import modal_span, pod_span

    own: Any = scene.numbers
    if scene.model == "modal":
        if own.snapshots:
            return pod_span(scene, own.snapshots, own.most), None
        return modal_span(scene, own.modes, own.order, own.most), None
    return domain_span(scene, own)


def with_cubature(scene: Scene, whole: Reduction, tolerance: float) -> Reduction:
    """A reduction with a few trained points instead of all."""
    from pliant.reduced.cubature import trained
    from pliant.reduced.training import training_poses

    poses = training_poses(scene, whole)
    forces = PointForces(whole.points)
    made = scene.constitution
    assert made.law is not None
    forces.set_law(made.law, len(scene.body.cells), *made.moduli())
    least = whole.span.size // (scene.dim * scene.dim) + whole.span.size // 4 + 1
    found = trained(whole.points, forces, poses, tolerance, least)
    report = {
        "points": float(len(found.points)), "all_points": float(len(whole.points)),
        "training_error": found.error, "poses": float(found.poses),
    }  # fmt: skip
    return replace(whole, points=found.points, report=report)
