"""What a fit found out about the material: what stays with the body when the scene is another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import Block
from pliant.inverse.fitting.fit import Fit
from pliant.inverse.joint.experiment import AT
from pliant.inverse.parameters.recording_blocks import recording_block
from pliant.inverse.parameters.unknown import Unknown
from pliant.inverse.parameters.unknowns import make_unknown

RATIOS = "damping_ratio" + AT
"""How the labels of damping_ratios begin."""


@dataclass(frozen=True)
class KnownMaterial:
    """values: by label of a fit; covariance: (p, p) of these, all causes; noise [m]: of its
    recording. sure: whether the fit itself was a success.
    """

    values: dict[str, float]
    covariance: np.ndarray
    noise: float
    sure: bool = True

    @classmethod
    def of(cls, fit: Fit) -> "KnownMaterial":
        """From a fit, its total error bars with the correlation that noise makes."""
        if len(fit.correlation) != len(fit.labels):
            raise BadInput(
                "This fit knows no correlations: a field belongs to its own body and predicts no "
                "other recording."
            )
        total = np.array([fit.body_sigma(x) for x in fit.labels])
        own = [o.name for o in fit.opinions]
        return known(fit.labels, fit.values, total, fit.correlation, fit.noise, fit.converged, own)

    def members(self, scene: Any) -> tuple[list[Unknown], list[int]]:
        """The unknowns of a scene that these values set, and which of the values they are."""
        groups: dict[str, list[int]] = {}
        labels = list(self.values)
        for i, label in enumerate(labels):
            name, block = _home(label, scene)
            if block is None or block.of_material:
                groups.setdefault(name, []).append(i)
        found, places = [], []
        for name, own in groups.items():
            member = make_unknown(name, [self.values[labels[i]] for i in own], scene)
            if list(member.labels) != [labels[i] for i in own]:
                raise BadInput(
                    f"The fit found {', '.join(labels[i] for i in own)}; in this scene there is "
                    f"{', '.join(member.labels)}."
                )
            found.append(member)
            places += own
        if not found:
            raise BadInput(
                f"The fit found nothing of the material ({', '.join(labels)}): there is nothing to "
                "predict another recording with."
            )
        return found, places


def _home(label: str, scene: Any) -> tuple[str, Block | None]:
    """The unknown that a label belongs to, whether the scene depends on it or not."""
    if label.startswith(RATIOS):
        return "damping_ratios", None
    whole = label.partition("[")[0]
    for name in (whole, whole.rpartition(".")[0]):
        try:
            block = recording_block(name) or scene.blocks.get(name)
        except BadInput:
            continue
        if block is not None:
            return name, block
    return whole, None


def known(
    labels: Sequence[str],
    values: dict[str, float],
    total: np.ndarray,
    correlation: np.ndarray,
    noise: float,
    sure: bool,
    experiments: Sequence[str] = (),
) -> KnownMaterial:
    """Without what is one experiment's own."""
    suffixes = tuple(AT + name for name in experiments)
    kept = [i for i, x in enumerate(labels) if not (suffixes and x.endswith(suffixes))]
    covariance = np.asarray(correlation, float) * np.outer(total, total)
    if not np.isfinite(covariance[np.ix_(kept, kept)]).all():
        raise BadInput("The fit has no finite error bars: it predicts nothing.")
    return KnownMaterial(
        {labels[i]: float(values[labels[i]]) for i in kept}, covariance[np.ix_(kept, kept)],
        noise, sure,
    )  # fmt: skip
