"""Shape matching (Mueller, Heidelberger, Teschner, Gross 2005; seed 001).

Each cluster of nodes fits its rest shape to where its members went: with masses m, places p about
the centre of mass and q at rest, A = sum m p q^T, moments B = sum m q q^T,

    R = rotation of A,   g = centre + (beta A B^-1 / det^(1/3) + (1 - beta) R) q,

or with the nine numbers (q, squares, products) in place of q ("quadratic"; these are taken without
their means, so that goals keep the momentum). Nodes go a share a of the way to the mean of their
clusters' goals, each cluster counting by its share of the node's mass. A pull of m (g - x) / T^2
has a = (h / T)^2 in substeps h, capped smoothly at 1,

    a = y (1 + y^4)^(-1/4),   y = (h / T)^2,

so stiffness does not depend on the time step. T is found from `alpha`, the share in 1/60 s (1 is
rigid), or, where alpha is 0, from Young's modulus: rigid goals of a cluster of density rho resist a
strain e with rho <q^2> / T^2 e^2 / 2, so 1 / T^2 = s E / (rho <q^2>), a body of Poisson's ratio 0.
Clusters as wide as the body resist its bending too much or too little: s makes the energy of
bending that of beams.
Plastic stretch S of a cluster takes over strains beyond `yield_strain` at the rate `creep`, up to
`limit`; q is then S q and B is S B S, without another sum.
"""

# Warp's structs are classes, whatever their decorator says.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, Series, launch, share, to_device, zeros
from pliant.dynamics.model import State
from pliant.dynamics.scene import Scene
from pliant.particles.cluster_fields import bending_ratio
from pliant.particles.clusters import Clusters, clusters_of
from pliant.particles.matching_kernels import (
    ClusterData,
    approach,
    cluster_energies,
    flow,
    match,
)
from pliant.particles.particle_model import ParticleModel

REFERENCE = 1.0 / 60.0
"""Time [s] that `alpha` is meant for."""

SHORT = 0.6
"""Longest substep over the shortest time T of a cluster, where T comes from the modulus."""

MOST_SUBSTEPS = 1000
"""Of a step, unless told."""

FLAT = 1e-6
"""Smallest moment of a cluster over its largest for which a linear goal is fitted: one that lies in
a plane at rest says nothing of what happens across it."""


class ShapeMatchingModel(ParticleModel):
    """Steps a scene with model = "shape-matching"; its state keeps R and S of the clusters."""

    def __init__(self, scene: Scene):
        body = scene.body
        self._rest = np.zeros((len(body.nodes), 3))
        self._rest[:, : body.dim] = body.nodes
        self.X = share(self._rest, wp.vec3d)
        self._made_for: int | None = None
        super().__init__(scene)

    def set_numbers(self) -> None:
        """Clusters, their times, and the launches of a substep."""
        own, body = self.scene.numbers, self.scene.body
        if self._made_for != own.clusters:
            self.clusters = clusters_of(body.nodes, body.cells, own.clusters)
            self._made_for = own.clusters
            count = len(self.clusters)
            self.R, self.S, self._T, self._square, self._mixed, self._fit = (
                zeros(count, wp.mat33d) for _ in range(6)
            )
            self._centre, self._energy = zeros(count, wp.vec3d), zeros(count, wp.float64)
        self.members = Members(self.clusters, self._rest, self.masses)
        self.stiffness = self._stiffness()
        finite = self.stiffness[np.isfinite(self.stiffness)]
        self._substeps = int(own.substeps) or 1
        if own.alpha == 0.0 and not own.substeps:
            shortest = 1.0 / np.sqrt(finite.max())
            asked = int(np.ceil(self.scene.dt / (SHORT * shortest)))
            self._substeps = max(1, min(asked, MOST_SUBSTEPS))
        h = self.scene.dt / self.substeps
        self._data = self.members.data(
            answered(self.stiffness * h * h), self.stiffness, float(own.beta),
            quadratic=own.goals == "quadratic", flat=body.dim == 2,
        )  # fmt: skip
        frame = [self._centre, self._T, self._square, self._mixed]
        begin, end = self.around()
        found = Recorded(
            match, len(self.clusters),
            [self._data, self.u, self.X, self.S, self.R, *frame, self._fit], grain=100,
        )  # fmt: skip
        gone = Recorded(
            approach, self.node_count, [self._data, self.X, *frame, self.free, self.u], grain=1000
        )
        yielding = []
        if own.yield_strain > 0.0:
            flat = int(body.dim == 2)
            numbers = [own.yield_strain, h * own.creep, own.limit, flat]
            inputs = [*numbers, self.R, self._fit, self.S]
            yielding = [Recorded(flow, len(self.clusters), inputs)]
        places = self.kept_places(to_device(self.inverse_mass, wp.float64))
        rounds = int(own.iterations) * [found, gone, *places]
        self._sweep = Series([begin, *rounds, *yielding, end])

    def _stiffness(self) -> np.ndarray:
        """1 / T^2 [1/s^2] of each cluster; infinite where it is rigid."""
        own, m = self.scene.numbers, self.members
        count = len(self.clusters)
        if own.alpha > 0.0:
            a = float(own.alpha)
            y = np.inf if a >= 1.0 else a * (1.0 - a**4) ** -0.25
            return np.full(count, y / REFERENCE**2)
        body = self.scene.body
        E = self.mu * (3.0 * self.lam + 2.0 * self.mu) / (self.lam + self.mu)
        volume = body.cell_volumes @ np.stack([E, self.material.densities(len(E))], axis=1)
        speed = float(volume[0] / volume[1])  # E over density
        spread = np.trace(m.moments, axis1=1, axis2=2) / (body.dim * m.total)
        plain = speed / spread
        return plain / bending_ratio(self.clusters, m, self._rest, plain, speed, body.dim)

    @property
    def substeps(self) -> int:
        """Parts of a step."""
        return self._substeps

    def sweep(self, k: int) -> None:
        """Substep k of the step, on u and v."""
        self._sweep.run()

    def initial_state(self) -> State:
        """See ParticleModel; clusters are neither turned nor stretched."""
        state = super().initial_state()
        one = np.broadcast_to(np.eye(3), (len(self.clusters), 3, 3))
        more = {name: to_device(one, wp.mat33d) for name in ("R", "S")}
        return State({**state.arrays, **more}, state.t)

    def take(self, state: State) -> None:
        """Begin a step at a state."""
        super().take(state)
        wp.copy(self.R, state.arrays["R"])
        wp.copy(self.S, state.arrays["S"])

    def given_back(self) -> dict[str, wp.array]:
        """The arrays of the state that a step has led to."""
        return {**super().given_back(), "R": wp.clone(self.R), "S": wp.clone(self.S)}

    def elastic_energy(self, state: State) -> float:
        """Energy [J] of the ways to the goals; of rigid clusters nothing."""
        if not np.isfinite(self.stiffness).all():
            return 0.0
        R = wp.clone(state.arrays["R"])
        frame = [self._centre, self._T, self._square, self._mixed]
        launch(
            match, len(self.clusters),
            [self._data, state.u, self.X, state.arrays["S"], R, *frame, self._fit],
        )  # fmt: skip
        inputs = [self._data, self.X, *frame, state.u, self._energy]
        launch(cluster_energies, len(self.clusters), inputs)
        return float(self._energy.numpy().sum())

    def residual(self, h: float) -> float:
        """Nothing is solved."""
        return 0.0


def answered(y: np.ndarray) -> np.ndarray:
    """The share a of the way to a goal, from y = (h / T)^2."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(y), y * (1.0 + y**4) ** -0.25, 1.0)


class Members:
    """Masses and rest places of the members of clusters."""

    def __init__(self, clusters: Clusters, rest: np.ndarray, masses: np.ndarray):
        self.clusters = clusters
        c, n = clusters.cluster, clusters.member
        shared = np.bincount(n, minlength=len(rest))
        self.weight = 1.0 / shared[n]
        self.share = masses[n] * self.weight
        self.total = self._sums(self.share[:, None])[:, 0]
        centre = self._sums(self.share[:, None] * rest[n]) / self.total[:, None]
        self.q = rest[n] - centre[c]
        outer = self.share[:, None, None] * self.q[:, :, None] * self.q[:, None, :]
        self.moments = self._sums(outer.reshape(-1, 9)).reshape(-1, 3, 3)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Over the members of each cluster."""
        return np.add.reduceat(values, self.clusters.start[:-1], axis=0)

    def _more(self) -> np.ndarray:
        """Squares and products of q without their means, (members, 6)."""
        x, y, z = self.q.T
        terms = np.stack([x * x, y * y, z * z, x * y, y * z, z * x], axis=1)
        mean = self._sums(self.share[:, None] * terms) / self.total[:, None]
        return terms - mean[self.clusters.cluster]

    def data(
        self, answer: np.ndarray, stiffness: np.ndarray, beta: float, *, quadratic: bool, flat: bool
    ) -> ClusterData:
        """On the device."""
        k, d = self.clusters, ClusterData()
        d.start, d.member = to_device(k.start, wp.int32), to_device(k.member, wp.int32)
        d.share, d.q = to_device(self.share, wp.float64), to_device(self.q, wp.vec3d)
        d.moment = to_device(self.moments, wp.mat33d)
        eigen = np.linalg.eigvalsh(self.moments)
        solid = eigen[:, 1 if flat else 0] > FLAT * eigen[:, -1]
        d.beta = to_device(np.where(solid, beta, 0.0), wp.float64)
        parts = [np.zeros((len(self.q), 3))] * 5
        if quadratic:
            nine = np.concatenate([self.q, self._more()], axis=1)
            outer = self.share[:, None, None] * nine[:, :, None] * nine[:, None, :]
            moments = self._sums(outer.reshape(-1, 81)).reshape(-1, 9, 9)
            inverse = np.linalg.pinv(moments, rcond=1e-10, hermitian=True)
            basis = np.einsum("eij,ej->ei", inverse[k.cluster], nine)
            parts = [nine[:, 3:6], nine[:, 6:], basis[:, :3], basis[:, 3:6], basis[:, 6:]]
        d.square, d.mixed, d.linear_basis, d.square_basis, d.mixed_basis = (
            to_device(part, wp.vec3d) for part in parts
        )
        order = np.argsort(k.member, kind="stable")
        counts = np.bincount(k.member, minlength=int(k.member.max()) + 1)
        d.node_start = to_device(np.concatenate([[0], np.cumsum(counts)]), wp.int32)
        d.place = to_device(order, wp.int32)
        d.member_of = to_device(k.cluster[order], wp.int32)
        d.weight = to_device(self.weight[order], wp.float64)
        d.stiffness = to_device(np.where(np.isfinite(stiffness), stiffness, 0.0), wp.float64)
        d.answer = to_device(answer, wp.float64)
        d.flat, d.quadratic = int(flat), int(quadratic)
        return d
