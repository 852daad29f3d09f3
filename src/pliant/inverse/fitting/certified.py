"""Fit on a cheap model, certify on the full one.

The unknowns are found first with another model of the same bodies ("reduced", "modal"), whose runs
cost next to nothing; its values are the start of a fit of the full bodies, which ends when their
own gradient is within its noise. Value and error bars are the full fit's, so nothing is left of the
cheap model's error but a start that is a little off: mostly one or two steps of Gauss-Newton.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.inverse.fitting.fit import Fit
from pliant.inverse.joint.experiment import Experiment

CHEAP = {"coarse_to_fine": False, "discretisation": False, "field_parts": False}
"""What the first fit leaves to the second."""

STEPS = 10
"""Steps of the first fit, unless told: what it misses of its own minimum is less than its error."""

NEAR = {"coarse_to_fine": False, "search": False, "multi_start": 1, "horizons": (1.0,)}
"""What the second need not do again."""

Reconstruct = Callable[..., Fit]


def certified(
    reconstruct: Reconstruct,
    scene: Any,
    seen: Any,
    unknowns: Mapping[str, Any],
    model: str,
    numbers: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Fit:
    """The fit of the full bodies from where the one with `model` ended."""
    began = time.perf_counter()
    if options.get("memory") is not None:
        raise BadInput("model: a fit that is taken up again goes on with the model it began with.")
    try:
        first = reconstruct(
            _with_model(scene, model, numbers), seen, unknowns,
            **{"max_iterations": STEPS, **options, **CHEAP},
        )  # fmt: skip
        start, told = starts(unknowns, first), ""
    except SolverFailure as failure:
        first, start = None, unknowns
        told = f"The fit on model = '{model}' failed, so the full one began afresh: {failure}"
    near = {} if first is None else NEAR
    second = reconstruct(scene, seen, start, **{**options, **near})
    if first is not None:
        told = _told(first, second, model)
        steps = [replace(step, stage=model) for step in first.history]
        second = replace(second, history=[*steps, *second.history], start=first.start)
    return replace(second, advice=[told, *second.advice], seconds=time.perf_counter() - began)


def starts(unknowns: Mapping[str, Any], found: Fit) -> dict[str, Any]:
    """The values of a fit as starts; an unknown whose numbers are fewer keeps the start it had."""
    out: dict[str, Any] = {}
    for name, given in unknowns.items():
        if name in found.values:
            out[name] = found.values[name]
            continue
        own = [found.values[n] for n in found.labels if n.partition("@")[0].startswith(f"{name}.")]
        out[name] = np.array(own) if len(own) == np.size(given) > 0 else given
    return out


def _with_model(scene: Any, model: str, numbers: Mapping[str, Any] | None) -> Any:
    if isinstance(scene, Sequence):
        return [
            replace(x, scene=_with_model(x.scene, model, numbers))
            if isinstance(x, Experiment) else x for x in scene
        ]  # fmt: skip
    return scene.by_model(model, numbers)


def _told(first: Fit, second: Fit, model: str) -> str:
    away = []
    for name in second.labels:
        if name in first.values:
            way = second.values[name] - first.values[name]
            away.append(f"{name} {way / max(second.sigma[name], 1e-300):+.1f}")
    return (
        f"Found with model = '{model}' in {first.iterations} steps and {first.seconds:.1f} s, then "
        f"in {second.iterations} of the full body, which moved the values by (in sigma): "
        f"{', '.join(away)}."
    )
