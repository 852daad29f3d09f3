"""The values of a scene that may be unknown: read from it, given on the command line, labelled."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import World
from pliant.inverse.joint.experiment import Experiment
from pliant.inverse.joint.sharing import joint_unknown
from pliant.inverse.parameters.recording_blocks import recording_block
from pliant.inverse.parameters.unknown import Unknown
from pliant.inverse.parameters.unknowns import find_block, make_unknown

TRUTH = "truth.json"
"""What a simulated recording was made with; lies beside it, and only tables show it."""


AWAY = {"poisson_ratio": lambda value: value + 0.02}
"""How far from the truth a fit of a filmed scene starts: 0.02 here, ten percent elsewhere."""

Values = dict[str, Any]


def scene_values(scene: World) -> Values:
    """Name: number, or list, of everything that may be unknown and is uniform in this scene."""
    found = {name: block.get(scene) for name, block in scene.blocks.items()}
    return {
        name: [float(c) for c in value] if np.ndim(value) else float(value)
        for name, value in found.items()
        if value is not None and (np.ndim(value) == 0 or scene.blocks[name].numbers > 1)
    }


def parse_unknowns(given: list[str], scene: World, *, away: bool) -> Values:
    """Starts by name of --unknown options such as youngs_modulus=2200 or gravity=0,-9.8,0.

    Without options: Young's modulus and Poisson's ratio, the law's own parameters, or all that may
    be unknown in a world without a material. Without a
    value: the scene's own, moved off it if `away` (the scene is its own truth).
    """
    own = scene_values(scene)
    starts: Values = {}
    for option in given or _usual(scene):
        name, _, text = (part.strip() for part in option.partition("="))
        if name in starts:
            raise BadInput(f"--unknown {name} is given twice.")
        block = find_block(name, scene)  # an unknown name is refused here
        neutral = neutral_values([name]).get(name)
        if text:
            starts[name] = _numbers(name, text, block.numbers)
        elif neutral is not None:
            starts[name] = neutral
        elif name in own:
            starts[name] = (
                AWAY.get(name, lambda v: 1.1 * v)(own[name])
                if (away and np.ndim(own[name]) == 0)
                else own[name]
            )
        else:
            raise BadInput(f"--unknown {name} needs a start: {name}=VALUE.")
        member = make_unknown(name, starts[name], scene)
        member.chart.coordinates(member.start)  # a start outside the possible is refused here
    return starts


def neutral_values(names: Iterable[str]) -> Values:
    """Name: number, or list, that corrects nothing, of those that are a recording's unknowns."""
    found = {name: recording_block(name) for name in names}
    values = {name: block.get(None) for name, block in found.items() if block is not None}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
        if value is not None
    }


def _usual(scene: World) -> list[str]:
    """What is fitted unless told."""
    if not scene.usual_unknowns:
        raise BadInput(f"Nothing of a {type(scene).__name__} may be unknown.")
    return scene.usual_unknowns


def _numbers(name: str, text: str, wanted: int) -> float | list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not np.isfinite(numbers).all():
        raise BadInput(f"--unknown {name}={text}: expected a number, or numbers with commas.")
    if len(numbers) != wanted:
        raise BadInput(f"--unknown {name} takes {wanted} number(s), not {len(numbers)}.")
    return numbers[0] if wanted == 1 else numbers


def member_of(name: str, start: Any, where: "World | Sequence[Experiment]") -> Unknown:
    """An unknown of a scene, or of several experiments."""
    if isinstance(where, Sequence):
        return joint_unknown(name, start, where)
    return make_unknown(name, start, where)


def labelled(
    starts: Values, values: Values, where: "World | Sequence[Experiment]"
) -> dict[str, float]:
    """Label: number of some values, in the coordinates of unknowns that start at `starts`."""
    out: dict[str, float] = {}
    for name, start in starts.items():
        if name not in values:
            continue
        member = member_of(name, start, where)
        value = np.atleast_1d(np.asarray(values[name], float))
        if member.block.name in ("gravity", "initial_velocity"):
            value = value[: member.size]
        if member.chart.angles:  # about its start
            try:
                numbers = member.chart.value(member.chart.coordinates(value))
            except BadInput:
                continue  # more than 90 degrees off: it has none
        elif len(value) == member.size:
            numbers = value
        else:
            continue
        out |= dict(zip(member.labels, (float(x) for x in numbers), strict=True))
    return out


def unlabelled(
    starts: Values, numbers: dict[str, float], where: "World | Sequence[Experiment]"
) -> Values:
    """Start values by name from numbers by label, as a history line holds them."""
    out: Values = {}
    for name, start in starts.items():
        member = member_of(name, start, where)
        try:
            value = np.array([float(numbers[label]) for label in member.labels])
        except (KeyError, TypeError, ValueError):
            return starts
        if member.chart.angles:
            out[name] = [float(c) for c in member.chart.setting(value)]
        else:
            out[name] = float(value[0]) if len(value) == 1 else [float(c) for c in value]
    return out


def stated_truth(folder: Path) -> Values:
    """The truth that lies beside a recording, if it does."""
    from pliant.app.describing.typed_files import Values, read_typed

    path = folder / TRUTH
    if not path.is_file():
        return {}
    return read_typed(path, Values, "It must hold names and numbers; remove it.")
