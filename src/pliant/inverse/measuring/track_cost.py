"""The cost of tracked points: simulated minus tracked position, component by component.

A tracked point belongs to the material point X and sits at

    x = phi(X) + R (o + d),      F = R S,

with the offset o at rest, an unknown d of where it really sits, and the rotation R of the body
around X: of the affine map F that fits the nodes near X best, which is linear in their positions.
With w = (tr(S) I - S)^-1 axl(R^T dF - dF^T R), d(R b) = R (w x b).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from pliant.core.errors import BadInput
from pliant.core.lengths import length
from pliant.core.vectors import in_space
from pliant.dynamics.model import World
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import LinearMisfit, Measure, Pair, beside
from pliant.inverse.parameters.priors import Prior
from pliant.inverse.parameters.recording_blocks import PLACES, POSE, TIME
from pliant.observe.calibration import NONE, Calibration, Pose
from pliant.observe.raycast import SurfaceQueries
from pliant.observe.tracks import NEAR, TrackedPoints

log = logging.getLogger(__name__)

AROUND = 27
"""Nodes whose motion tells how the body turns at a point: those of the cells around a node."""


@dataclass(frozen=True)
class Turning:
    """R (points, 3, 3) and the inverse of tr(S) I - S."""

    R: np.ndarray
    inverse: np.ndarray

    @classmethod
    def of(cls, F: np.ndarray) -> "Turning":
        """Of affine maps (points, 3, 3)."""
        U, s, V = np.linalg.svd(F)
        flip = np.linalg.det(U @ V)
        s[:, 2] *= flip
        U[:, :, 2] *= flip[:, None]
        R = U @ V
        S = np.einsum("pki,pk,pkj->pij", V, s, V)
        K = np.einsum("pii->p", S)[:, None, None] * np.eye(3) - S
        return cls(R, np.linalg.inv(K))

    def along(self, dF: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Change of R b, (points, 3)."""
        A = np.einsum("pki,pkj->pij", self.R, dF)
        a = np.stack([A[:, 2, 1] - A[:, 1, 2], A[:, 0, 2] - A[:, 2, 0], A[:, 1, 0] - A[:, 0, 1]], 1)
        w = np.einsum("pij,pj->pi", self.inverse, a)
        return np.einsum("pij,pj->pi", self.R, np.cross(w, b))

    def pull(self, bar: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Transpose: duals of F (points, 3, 3) from those of R b."""
        w = np.cross(b, np.einsum("pji,pj->pi", self.R, bar))
        a = np.einsum("pij,pj->pi", self.inverse, w)
        A = np.zeros((len(a), 3, 3))
        A[:, 2, 1], A[:, 0, 2], A[:, 1, 0] = a[:, 0], a[:, 1], a[:, 2]
        return self.R @ (A - A.transpose(0, 2, 1))


class TrackMeasure(Measure):
    """Tracked points against the body's; see Measure. Residuals count in units of `noise`: those of
    a point twice as uncertain are half as large.
    """

    cost_name = "tracks"

    def __init__(self, scene: World, seen: TrackedPoints):
        body = scene.body
        if seen.dim != scene.dim:
            raise BadInput(f"The tracked points are {seen.dim}D, the body {scene.dim}D.")
        self._seen, self._dim = seen, scene.dim
        self._nodes = in_space(body.nodes)
        if seen.at is None:
            log.warning(
                "The tracks do not say which material points they are: the first positions seen, "
                "with their noise, are taken for those at rest."
            )
        at = seen.first() if seen.at is None else np.asarray(seen.at)
        material, beyond = _on_body(body, at, seen.names)
        self._offset = in_space(beyond if seen.offset is None else beyond + seen.offset)
        self._carried = _embedding(body, material)
        self._material, self._spread_map = material, None
        self._positions, self._present = in_space(seen.positions), seen.present
        weight = np.ones(len(seen)) if seen.sigma is None else seen.noise / np.asarray(seen.sigma)
        self._weight = weight
        self.times = [(k, float(t)) for k, t in enumerate(seen.times) if self._present[k].any()]
        self.frame_count, self.noise = len(seen.times), seen.noise
        self.names = tuple(seen.names)
        self._centre = np.nanmean(self._positions.reshape(-1, 3), axis=0)

    def corrections(self) -> list[str]:
        """See Measure."""
        return [TIME, POSE, PLACES] if self._dim == 3 else [TIME, PLACES]

    @property
    def _gradient(self) -> sparse.csr_array:
        """(points * 3, nodes) with F = gradient @ positions; made when it is first needed."""
        if self._spread_map is None:
            self._spread_map = _affine_maps(self._nodes, self._material, self._dim)
        return self._spread_map

    def _maps(self, motion: np.ndarray) -> np.ndarray:
        """F, or its change, (points, 3, 3) of positions, or motions, (nodes, 3)."""
        return (self._gradient @ motion).reshape(-1, 3, 3).transpose(0, 2, 1)

    def positions(self, u: np.ndarray, calibration: Calibration = NONE) -> np.ndarray:
        """Where the simulated points are, (points, 3), for a displacement (nodes, 3)."""
        return self._simulated(u, calibration)[0]

    def tracked(self, frame: int, calibration: Calibration = NONE) -> np.ndarray:
        """Where the points were seen, corrected, (points, 3)."""
        return Pose(calibration.pose, self._centre).apply(self._positions[frame])

    def courses(
        self, frame: int, r: np.ndarray, band: np.ndarray, calibration: Calibration = NONE
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (points, dim) of a frame as seen, and as simulated where the residuals are r,
        with their standard deviations where those of r are `band`; not a number where not seen.
        """
        here, dim = np.flatnonzero(self._present[frame]), self._dim
        seen = np.full((len(self._weight), dim), np.nan)
        simulated, wide = seen.copy(), seen.copy()
        seen[here] = self.tracked(frame, calibration)[here][:, :dim]
        scale = self._weight[here, None]
        simulated[here] = seen[here] + r.reshape(dim, -1).T / scale
        wide[here] = band.reshape(dim, -1).T / scale
        return seen, simulated, wide

    def _simulated(self, u, calibration) -> tuple[np.ndarray, np.ndarray, Turning | None]:
        x = self._carried @ (self._nodes + u)
        b = self._offset
        if calibration.places is not None:
            if len(calibration.places) != len(b):
                raise BadInput(
                    f"{PLACES} needs 3 numbers for each of the {len(b)} tracked points, not "
                    f"{calibration.places.size} in all."
                )
            b = b + calibration.places
        elif not b.any():
            return x, b, None
        F = self._maps(self._nodes + u)
        if self._dim == 2:
            F[:, 2, 2] = 1.0
        turning = Turning.of(F)
        return x + np.einsum("pij,pj->pi", turning.R, b), b, turning

    def linear(
        self, frame: int, state: Pair, loss: Loss, calibration: Calibration = NONE
    ) -> LinearMisfit:
        """See Measure."""
        x, b, turning = self._simulated(state[0], calibration)
        here, dim = np.flatnonzero(self._present[frame]), self._dim
        pose = Pose(calibration.pose, self._centre)
        place = self.tracked(frame, calibration)[here]
        scale = self._weight[here]

        def stacked(motion: np.ndarray) -> np.ndarray:
            """Components x of all points, then y, then z: neighbours in it are points."""
            return (scale[:, None] * motion)[:, :dim].T.reshape(-1)

        r = stacked(x[here] - place)

        def along(changes: Sequence[Pair]) -> np.ndarray:
            columns = []
            for du, _ in changes:
                dx = self._carried @ du
                if turning is not None:
                    dx = dx + turning.along(self._maps(du), b)
                columns.append(stacked(dx[here]))
            return beside(columns, len(r))

        def pull(weight: np.ndarray) -> Pair:
            bar = np.zeros((len(x), 3))
            bar[here, :dim] = scale[:, None] * weight.reshape(dim, -1).T
            out = self._carried.T @ bar
            if turning is not None:
                by_map = turning.pull(bar, b).transpose(0, 2, 1).reshape(-1, 3)
                out = out + self._gradient.T @ by_map
            return out, np.zeros_like(out)

        def by_recording(name: str) -> np.ndarray:
            if name == POSE:
                rows = [pose.slopes(np.outer(-scale, unit), place) for unit in np.eye(3)]
                return np.concatenate(rows)
            assert turning is not None
            out = np.zeros((dim, len(here), len(x), 3))
            for k, p in enumerate(here):
                out[:, k, p] = scale[k] * turning.R[p, :dim]
            return out.reshape(dim * len(here), -1)

        return LinearMisfit(r, np.ones(len(r), bool), along, pull, by_recording)


def with_places(
    seen: Any, unknowns: Mapping[str, Any], priors: Mapping[str, Prior] | None
) -> tuple[dict[str, Any], dict[str, Prior]]:
    """Unknowns and priors of a fit with the places of tracked points that are not known well."""
    starts, known = dict(unknowns), dict(priors or {})
    if isinstance(seen, TrackedPoints) and seen.at_sigma is not None:
        starts.setdefault(PLACES, np.zeros(3 * len(seen)))
        for i, sigma in enumerate(np.repeat(np.asarray(seen.at_sigma), 3)):
            known.setdefault(f"{PLACES}[{i}]", Prior(0.0, float(sigma)))
    return starts, known


def _on_body(body, at: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The body's points nearest to `at`, and the way from there to it, (points, dim) each."""
    diagonal = float(np.linalg.norm(np.ptp(body.nodes, axis=0)))
    gap = KDTree(body.nodes).query(at)[0]
    far = int(np.argmax(gap))
    if gap[far] > NEAR * diagonal:
        raise BadInput(
            f"The tracked point '{names[far]}' lies {length(gap[far])} from the body, which is "
            f"{length(diagonal)} large: say at which material points the tracks are (at=...), or "
            "check their units and their frame of reference."
        )
    material = np.array(at, float)
    if body.dim == 3 and hasattr(body, "locate"):
        surface = body.surface
        queries = SurfaceQueries(surface.positions(body.nodes), surface.facets)
        hits = queries.nearest(material)
        corners = queries.positions[queries.triangles[hits.triangle]]
        foot = np.einsum("mc,mci->mi", hits.bary, corners)
        material = np.where((hits.distance > 0.0)[:, None], foot, material)
    return material, at - material


def _embedding(body, material: np.ndarray) -> sparse.csr_array:
    """(points, nodes): material points by nodes; of bodies without cells, their nearest nodes."""
    if hasattr(body, "locate"):
        return sparse.csr_array(body.locate(material).matrix)
    gap, nearest = KDTree(body.nodes).query(material)
    if gap.max() > 1e-6 * max(float(np.ptp(body.nodes, axis=0).max()), 1e-12):
        raise BadInput("Tracked points of a body without cells must be nodes of it.")
    count = len(material)
    shape = (count, len(body.nodes))
    return sparse.csr_array((np.ones(count), (np.arange(count), nearest)), shape=shape)


def _affine_maps(nodes: np.ndarray, material: np.ndarray, dim: int) -> sparse.csr_array:
    """Rows 3 p + j: derivative by X_j of the affine map that fits the nodes near point p best."""
    near = min(AROUND, len(nodes))
    _, around = KDTree(nodes[:, :dim]).query(material, k=near)
    rows, columns, values = [], [], []
    for p, own in enumerate(np.atleast_2d(around)):
        arm = nodes[own, :dim] - nodes[own, :dim].mean(axis=0)
        M = arm.T @ arm
        if np.linalg.cond(M) > 1e8:
            raise BadInput(
                "The body has too few nodes around a tracked point to tell how it turns there: "
                "track points of the body itself, without an offset."
            )
        weights = np.linalg.solve(M, arm.T)
        for j in range(dim):
            rows.append(np.full(len(own), 3 * p + j))
            columns.append(own)
            values.append(weights[j])
    shape = (3 * len(material), len(nodes))
    found = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(found, shape=shape)
