"""How much of a bending a body of clusters resists, over what a beam of its modulus does.

With the displacement u of a small bending, a cluster holds sum m |u - r|^2 / (2 T^2), r the rigid
motion nearest to u (its goal, to first order). A body of modulus E and Poisson's ratio 0 whose
strain along one axis is linear across another, e_xx = y, holds E / 2 times the integral of y^2.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pliant.particles.clusters import Clusters
    from pliant.particles.shape_matching import Members


def bending_ratio(
    clusters: "Clusters",
    members: "Members",
    rest: np.ndarray,
    stiffness: np.ndarray,
    speed: float,
    dim: int,
) -> float:
    """Mean over the bendings along the body's longest axis; stiffness: 1 / T^2, speed: E / rho."""
    mass = np.bincount(clusters.member, members.share, len(rest))
    x = rest - (mass @ rest) / mass.sum()
    moments = np.einsum("n,ni,nj->ij", mass, x, x)[:dim, :dim]
    axes = np.linalg.eigh(moments)[1][:, ::-1]  # the longest first
    y = x[:, :dim] @ axes
    ratios = []
    for other in range(1, dim):
        u = np.zeros((len(rest), dim))
        u[:, 0] = y[:, 0] * y[:, other]
        u[:, other] = -0.5 * y[:, 0] ** 2
        field = np.zeros((len(rest), 3))
        field[:, :dim] = u @ axes.T
        held = float(np.sum(stiffness * _apart(clusters, members, field)))
        ratios.append(held / (speed * float(mass @ y[:, other] ** 2)))
    return float(np.mean(ratios))


def _apart(clusters: "Clusters", members: "Members", u: np.ndarray) -> np.ndarray:
    """sum m |u - r|^2 of each cluster."""
    c, m, q = clusters.cluster, members.share[:, None], members.q
    own = u[clusters.member]

    def sums(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, clusters.start[:-1], axis=0)

    own = own - (sums(m * own) / members.total[:, None])[c]
    inertia = np.trace(members.moments, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    inertia = inertia - members.moments
    spin = sums(m * np.cross(q, own))
    turn = np.einsum("cij,cj->ci", np.linalg.pinv(inertia, rcond=1e-9, hermitian=True), spin)
    own = own - np.cross(turn[c], q)
    return sums(m * own * own).sum(axis=1)
