"""Material laws: one energy a file, and `energy` for a user's own."""

from pliant.core.errors import BadInput
from pliant.fem.laws.arruda_boyce import ArrudaBoyce
from pliant.fem.laws.corotated import Corotated
from pliant.fem.laws.curves import biaxial, shear, uniaxial
from pliant.fem.laws.fung import Fung
from pliant.fem.laws.invariants import (
    cauchy_green,
    det,
    first_invariant,
    isochoric,
    second_invariant,
    stretches,
)
from pliant.fem.laws.law import Energy, Law, energy
from pliant.fem.laws.mooney_rivlin import MooneyRivlin
from pliant.fem.laws.neo_hookean import NeoHookean
from pliant.fem.laws.ogden import Ogden, Ogden3
from pliant.fem.laws.polynomial import Polynomial
from pliant.fem.laws.st_venant_kirchhoff import StVenantKirchhoff
from pliant.fem.laws.stable_neo_hookean import StableNeoHookean
from pliant.fem.laws.volume_guarding import VolumeGuarding
from pliant.fem.laws.volume_guarding_printed import VolumeGuardingPrinted
from pliant.fem.laws.yeoh import Yeoh

LAWS: dict[str, Energy] = {
    e.name: e
    for e in (
        StVenantKirchhoff, NeoHookean, StableNeoHookean, MooneyRivlin, Yeoh, Ogden, Ogden3,
        ArrudaBoyce, Fung, Polynomial, Corotated, VolumeGuarding,
    )
}  # fmt: skip
"""Built-in energies by name, for scene files and the command line."""


def find_law(name: str) -> Energy:
    """A built-in energy by its name."""
    if name not in LAWS:
        import difflib

        near = difflib.get_close_matches(name, LAWS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else f" Known: {', '.join(LAWS)}."
        raise BadInput(f"There is no law called '{name}'.{hint}")
    return LAWS[name]


__all__ = [
    "ArrudaBoyce", "Corotated", "Energy", "Fung", "LAWS", "Law", "MooneyRivlin", "NeoHookean",
    "Ogden", "Ogden3", "Polynomial", "StVenantKirchhoff", "StableNeoHookean", "VolumeGuarding",
    "VolumeGuardingPrinted", "Yeoh", "biaxial", "cauchy_green", "det", "energy", "find_law",
    "first_invariant", "isochoric", "second_invariant", "shear", "stretches", "uniaxial",
]  # fmt: skip
