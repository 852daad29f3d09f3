"""Which unknowns several experiments share, and which are one experiment's own.

A plain name is one value for all experiments; NAME@EXPERIMENT is that experiment's own, and there
takes the place of a shared one. With q all free coordinates, experiment k sees q[place_k].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.inverse.joint.experiment import AT, Experiment
from pliant.inverse.measuring.track_cost import with_places
from pliant.inverse.parameters.priors import Prior
from pliant.inverse.parameters.recording_blocks import PLACES
from pliant.inverse.parameters.unknown import Unknown
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown


@dataclass(frozen=True)
class Sharing:
    """unknowns: all of a fit. own: those of each experiment under plain names, without priors and
    bounds if there are several experiments. place: (p_k,) where these are in q. home: of each
    member of `unknowns`, the first experiment that has it.
    """

    unknowns: UnknownSet
    own: tuple[UnknownSet, ...]
    place: tuple[np.ndarray, ...]
    home: tuple[int, ...]

    @property
    def shared(self) -> np.ndarray:
        """(p,): whether more than one experiment depends on a coordinate of q."""
        count = np.zeros(len(self.unknowns.labels), int)
        for place in self.place:
            count[place] += 1
        return count > 1


def split_name(name: str, experiments: Sequence[Experiment]) -> tuple[str, int | None]:
    """An unknown's plain name, and whose own it is; None: everybody's."""
    plain, at, whose = name.rpartition(AT)
    if not at:
        return name, None
    names = [x.name for x in experiments]
    if whose in names:
        return plain, names.index(whose)
    raise BadInput(f"'{name}': there is no experiment '{whose}'; there are {', '.join(names)}.")


def joint_unknown(name: str, start: Any, experiments: Sequence[Experiment]) -> Unknown:
    """The unknown of that name in all experiments, or in the one that the name says."""
    plain, whose = split_name(name, experiments)
    member = make_unknown(plain, start, experiments[whose or 0].scene)
    if whose is None:
        return member
    suffix = AT + experiments[whose].name
    return replace(member, labels=tuple(x + suffix for x in member.labels), suffix=suffix)


def share(
    experiments: Sequence[Experiment],
    starts: Mapping[str, Any],
    priors: Mapping[str, Prior],
    bounds: Mapping[str, tuple[float, float]],
) -> Sharing:
    """The unknowns {name: start} of experiments that have names."""
    split = {name: split_name(name, experiments) for name in starts}
    members = tuple(joint_unknown(n, v, experiments) for n, v in starts.items())
    unknowns = UnknownSet(members, priors, bounds)
    if len(experiments) == 1 and all(whose is None for _, whose in split.values()):
        return Sharing(
            unknowns, (unknowns,), (np.arange(len(unknowns.labels)),), (0,) * len(members)
        )
    first = np.concatenate([[0], np.cumsum([m.size for m in members])])
    home = [-1] * len(members)
    own, places = [], []
    for k, x in enumerate(experiments):
        replaced = {plain for plain, whose in split.values() if whose == k}
        mine, place = [], []
        for i, (name, member) in enumerate(zip(starts, members, strict=True)):
            plain, whose = split[name]
            if whose not in (None, k) or (whose is None and plain in replaced):
                continue
            here = _there(plain, starts[name], x)
            if here.size != member.size:
                raise BadInput(
                    f"'{plain}' has {here.size} numbers in experiment {x.name} and {member.size} "
                    f"elsewhere: make it each one's own, {plain}{AT}{x.name}."
                )
            mine.append(replace(here, chart=member.chart))
            place.append(np.arange(first[i], first[i + 1]))
            home[i] = k if home[i] < 0 else home[i]
        if not mine:
            raise BadInput(f"Nothing of experiment {x.name} is unknown: leave it out.")
        own.append(UnknownSet(tuple(mine)))
        places.append(np.concatenate(place))
    for name, k in zip(starts, home, strict=True):
        if k < 0:
            raise BadInput(f"'{name}' is unknown, but every experiment has one of its own.")
    return Sharing(unknowns, tuple(own), tuple(places), tuple(home))


def with_all_places(
    experiments: Sequence[Experiment],
    starts: Mapping[str, Any],
    priors: Mapping[str, Prior] | None,
) -> tuple[dict[str, Any], dict[str, Prior]]:
    """Unknowns and priors with the places of tracked points that are not known well, of each
    experiment its own.
    """
    known: dict[str, Prior] = dict(priors or {})
    if len(experiments) == 1 and not any(AT in name for name in starts):
        return with_places(experiments[0].seen, starts, known)
    out = dict(starts)
    for x in experiments:
        if PLACES in starts:  # the same points everywhere
            break
        suffix = AT + x.name
        own, sure = with_places(x.seen, {}, {})
        for name, value in own.items():
            out.setdefault(name + suffix, value)
        for label, prior in sure.items():
            known.setdefault(label + suffix, prior)
    return out, known


def _there(plain: str, start: Any, experiment: Experiment) -> Unknown:
    try:
        return make_unknown(plain, start, experiment.scene)
    except BadInput as error:
        raise BadInput(f"Experiment {experiment.name}: {error}") from None
