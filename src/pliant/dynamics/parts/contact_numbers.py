"""How the stiffness between parts follows their moduli.

E = mu (3 lambda + 2 mu) / (lambda + mu), the mean over a part's cells.
"""

from typing import TYPE_CHECKING

import numpy as np

from pliant.dynamics.model import Parameters

if TYPE_CHECKING:
    from pliant.dynamics.parts.assembly import AssemblyModel


def mean_modulus(lam: np.ndarray, mu: np.ndarray) -> float:
    """Mean Young's modulus [Pa] of cells."""
    return float(np.mean(mu * (3.0 * lam + 2.0 * mu) / (lam + mu)))


def _slopes(model: "AssemblyModel", k: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the stiffness of part k by lambda and mu of its cells, (cells,) each."""
    own = model.models[k]
    lam, mu = own.lam, own.mu
    share = model.stiffness_per_modulus[k] / (len(lam) * (lam + mu) ** 2)
    return share * mu**2, share * (3.0 * lam**2 + 4.0 * lam * mu + 2.0 * mu**2)


def stiffness_change(model: "AssemblyModel", k: int, p: Parameters) -> float:
    """Of part k, along a direction of its own parameters."""
    by_lam, by_mu = _slopes(model, k)
    return float(np.sum(by_lam * p.get("lam", 0.0)) + np.sum(by_mu * p.get("mu", 0.0)))


def stiffness_pull(model: "AssemblyModel", k: int, bar: float, dual: Parameters) -> None:
    """The transpose of `stiffness_change`."""
    by_lam, by_mu = _slopes(model, k)
    dual.add("lam", bar * by_lam)
    dual.add("mu", bar * by_mu)
