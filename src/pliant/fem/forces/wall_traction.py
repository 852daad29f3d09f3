"""What a corotated body's own stress does at its weak walls: Nitsche's terms in turning frames.

Held by a penalty alone, a wall in the middle of cells slips, or is held so firmly that it holds the
cells as a whole. Nitsche's method takes the traction of the body's own stress into account, and
needs no more penalty than coercivity asks. In a cell with the frame R of its mean deformation
gradient, y_a = R^T (X_a + u_a) - X_a and the slip s_b = R^T P (u_b - g_b) of its nodes (P: held
components, g: given displacement),

    E = sum_ab (1/2 s_b . N_ba s_a - s_b . C_ba y_a),    C_ba = integral_wall N_b T_a,

T_a the linear stress on the wall, sigma(y) n = sum_a T_a y_a, and N lambda's penalty. Seen in the
frame that is the linear method, so with the penalty of mu (fem.cutting.walls) and the cell's own
corotated energy it is positive however far the cell has turned; in the frame of the rest it has no
such bound (a clamped silicone block that swings to 50 degrees found no balance).

With e_b = sum_a (C_ba y_a - N_ba s_a), h_a = sum_b C_ba^T s_b, x_a = R^T (X_a + u_a), dR = R [w]x
of w = sum_a W_a dx_a (fem.forces.corotation_kernels) and Pi = R^T P R,

    f_a = R (-Pi e_a - h_a + l x m_a),   l = L tau,   tau = sum_a (s_a x e_a + x_a x h_a),

and the second derivative along dx, ydot_a = dx_a + x_a x w, sdot_b = Pi dx_b + s_b x w,

    sdot . N sdot - 2 sdot . C ydot + w . sum_a ((Pi dx_a + sdot_a) x e_a + (dx_a + ydot_a) x h_a)
    - 2 (l . w) (m . dx) + sum_a ((l . dx_a) (m_a . w) + (l . m_a) (dx_a . w)).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.cutting.walls import Walls
from pliant.fem.forces.cell_data import cell_means
from pliant.fem.forces.polar import rotation, spin_matrix
from pliant.fem.forces.wall_operator import FEW, WallOperator


@wp.struct
class TractionData:
    """Of the walls' entries (w,): nodes and rest arms (w, k), mean gradients; C, N by (b, a)."""

    k: wp.int32
    corners: wp.array2d(dtype=wp.int32)
    arm: wp.array2d(dtype=wp.vec3d)
    mean: wp.array2d(dtype=wp.vec3d)
    axes: wp.array(dtype=wp.vec3d)
    C: wp.array2d(dtype=wp.mat33d)
    N: wp.array2d(dtype=wp.mat33d)


@wp.func
def _mean_gradient(d: TractionData, w: int, u: wp.array(dtype=wp.vec3d)) -> wp.mat33d:
    """F of the entry's cell."""
    F = wp.identity(n=3, dtype=wp.float64)
    for a in range(d.k):
        F += wp.outer(u[d.corners[w, a]], d.mean[w, a])
    return F


@wp.kernel
def _traction_forces(
    first: wp.int32,
    d: TractionData,
    u: wp.array(dtype=wp.vec3d),
    given: wp.array2d(dtype=wp.vec3d),
    y: wp.array2d(dtype=wp.vec3d),
    s: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
    energy: wp.array(dtype=wp.float64),
):
    """out[w, a] = f_a of the entry, energy[w] = E; y and s are left beside them."""
    w = first + wp.tid()
    k = d.k
    P = wp.diag(d.axes[w])
    origin = u[d.corners[w, 0]]
    F = _mean_gradient(d, w, u)
    R = rotation(F)
    back = wp.transpose(R)
    Pi = back * P * R
    for a in range(k):
        moved = u[d.corners[w, a]]
        y[w, a] = back * (d.arm[w, a] + moved - origin) - d.arm[w, a]
        s[w, a] = back * (P * (moved - given[w, a]))
    torque = wp.vec3d()
    total = wp.float64(0.0)
    for a in range(k):
        e = wp.vec3d()
        h = wp.vec3d()
        held = wp.vec3d()
        for b in range(k):
            e += d.C[w, a * k + b] * y[w, b]
            h += wp.transpose(d.C[w, b * k + a]) * s[w, b]
            held += d.N[w, a * k + b] * s[w, b]
        total += wp.dot(s[w, a], wp.float64(0.5) * held - e)
        e -= held
        torque += wp.cross(s[w, a], e) + wp.cross(d.arm[w, a] + y[w, a], h)
        out[w, a] = -(Pi * e + h)
    l = spin_matrix(R, F) * torque
    for a in range(k):
        out[w, a] = R * (out[w, a] + wp.cross(l, d.mean[w, a]))
    energy[w] = total


@wp.kernel
def _warped_blocks(
    first: wp.int32,
    d: TractionData,
    u: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.mat33d),
):
    """out[w, b k + a] = P R N_ba R^T P - P R C_ba R^T - (P R C_ab R^T)^T: frames stand still."""
    w = first + wp.tid()
    R = rotation(_mean_gradient(d, w, u))
    back = wp.transpose(R)
    held = wp.diag(d.axes[w]) * R
    for b in range(d.k):
        for a in range(d.k):
            there = held * d.C[w, b * d.k + a] * back
            here = held * d.C[w, a * d.k + b] * back
            firm = held * d.N[w, b * d.k + a] * wp.transpose(held)
            out[w, b * d.k + a] = firm - there - wp.transpose(here)


class WallTractions:
    """The term of some walls on the device, for one set of moduli."""

    def __init__(self, walls: Walls, operator: WallOperator):
        self.walls, self._operator = walls, operator
        body, k = walls.body, walls.body.cells.shape[1]
        self.cells = body.cells[walls.cell]
        X = np.zeros((len(body.nodes), 3))
        X[:, : body.dim] = body.nodes
        self.nodes = X[self.cells]
        self.arm = self.nodes - self.nodes[:, :1]
        self.mean = body.to_world(cell_means(body)[0])[body.geometry_row[walls.cell]]
        self._data = d = TractionData()
        d.k = k
        d.corners = to_device(self.cells, wp.int32)
        d.arm, d.mean = (to_device(f, wp.vec3d) for f in (self.arm, self.mean))
        d.axes = to_device(walls.axes, wp.vec3d)
        count = len(walls.cell)
        d.C, d.N = (zeros((count, k * k), wp.mat33d) for _ in range(2))
        self._y, self._s, self._out, self._still = (zeros((count, k), wp.vec3d) for _ in range(4))
        self._energy = zeros(count, wp.float64)
        self._blocks = zeros((count, k * k), wp.mat33d)
        self._by_moduli = tuple(
            np.ascontiguousarray(C.transpose(0, 1, 3, 2, 4)).reshape(count, 3 * k, 3 * k)
            for C in (walls.traction_lam, walls.traction_mu, walls.flux_lam)
        )
        self._kept: list[tuple[wp.array, np.ndarray, np.ndarray]] = []

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Moduli (cells,) [Pa]."""
        self._kept.clear()
        c, walls = (slice(None), None, None, None, None), self.walls
        lam, mu = (x[walls.cell] for x in (lam, mu))
        C = lam[c] * walls.traction_lam + mu[c] * walls.traction_mu
        for on_device, host in ((self._data.C, C), (self._data.N, lam[c] * walls.flux_lam)):
            on_device.assign(host.reshape(len(host), -1, 3, 3))
        self._products = self.products(lam, mu)

    def products(self, lam: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """C and N (w, 3k, 3k) for moduli (w,) of the walls' cells."""
        c = (slice(None), None, None)
        by_lam, by_mu, flux = self._by_moduli
        return lam[c] * by_lam + mu[c] * by_mu, lam[c] * flux

    def add_force(
        self, u: wp.array, given: np.ndarray | None, out: wp.array, *, factor: float
    ) -> None:
        """out += factor * dE/du; given: displacement (w, k, 3) of the entries' nodes, or None."""
        self._place(u, given)
        self._operator.add_entries(self._out, out, factor=factor)

    def energy(self, u: wp.array, given: np.ndarray | None) -> float:
        """E [J]."""
        self._place(u, given)
        return float(self._energy.numpy().sum())

    def _place(self, u: wp.array, given: np.ndarray | None) -> None:
        held = self._still if given is None else to_device(given, wp.vec3d)
        launch(
            _traction_forces, len(self.cells),
            [self._data, u, held, self._y, self._s, self._out, self._energy], grain=FEW,
        )  # fmt: skip

    def pull_of_given(self, u: wp.array, given: np.ndarray | None) -> np.ndarray:
        """dE/dg, (w, k, 3): the force with which the walls hold the body, by its own stress."""
        host = u.numpy()
        R = self._rotations(host)
        y, s, _, _ = self._seen(R, host, given)
        e, _ = self._pulls(y, s, *self._products)
        return self.walls.axes[:, None, :] * np.einsum("wij,wbj->wbi", R, e)

    # second derivatives --------------------------------------------------------------------------

    def assemble(self, matrix, u: wp.array, given: np.ndarray | None, factor: float, *,
                 exact: bool) -> None:  # fmt: skip
        """matrix += factor * d2E/du2, or with frames that stand still."""
        if exact:
            w, k = self.cells.shape
            # not `hessian`: Newton's method changes u in place between two tangents
            H = self._hessian(u.numpy(), given).reshape(w, k, 3, k, 3).transpose(0, 1, 3, 2, 4)
            self._blocks.assign(np.ascontiguousarray(H).reshape(w, k * k, 3, 3))
        else:
            launch(_warped_blocks, len(self.cells), [self._data, u, self._blocks], grain=FEW)
        self._operator.assemble_entries(matrix, self._blocks, factor)

    def add_change(
        self, u: wp.array, given: np.ndarray | None, d_u: wp.array, out: wp.array, *, factor: float
    ) -> None:
        """out += factor * d2E/du2 d_u; symmetric, so the same call is its transpose."""
        local = d_u.numpy()[self.cells].reshape(len(self.cells), -1, 1)
        f = np.matmul(self.hessian(u, given), local).reshape(*self.cells.shape, 3)
        self.add_host(f, out, factor=factor)

    def add_host(self, entries: np.ndarray, out: wp.array, *, factor: float) -> None:
        """out += factor * forces (w, k, 3) on the entries' nodes."""
        self._operator.add_entries(to_device(entries, wp.vec3d), out, factor=factor)

    def by_moduli(self, u: wp.array, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """dE/du (w, k, 3) for lambda = 1 alone and for mu = 1 alone."""
        host = u.numpy()
        R = self._rotations(host)
        by_lam, by_mu, flux = self._by_moduli
        none = np.zeros_like(flux)
        return (self.gradient(R, host, given, by_lam, flux),
                self.gradient(R, host, given, by_mu, none))  # fmt: skip

    def gradient(self, R, u, given: np.ndarray | None, C, N) -> np.ndarray:
        """dE/du (w, k, 3) in NumPy, complex too; R (w, 3, 3) of the entries' cells."""
        y, s, x, F = self._seen(R, u, given)
        e, h = self._pulls(y, s, C, N)
        torque = np.cross(s, e).sum(axis=1) + np.cross(x, h).sum(axis=1)
        l = np.einsum("wij,wj->wi", _spin(R, F), torque)
        held = self.walls.axes[:, None, :] * np.einsum("wij,waj->wai", R, e)  # P R e = R Pi e
        return np.einsum("wij,waj->wai", R, np.cross(l[:, None, :], self.mean) - h) - held

    def hessian(self, u: wp.array, given: np.ndarray | None) -> np.ndarray:
        """d2E/du2 of every entry, (w, 3k, 3k); kept for the two ends of a step, which stay."""
        for at, held, H in self._kept:
            if at is u and np.array_equal(held, 0.0 if given is None else given):
                return H
        H = self._hessian(u.numpy(), given)
        self._kept = [(u, np.zeros(()) if given is None else given, H), *self._kept[:1]]
        return H

    def _hessian(self, u: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        R = self._rotations(u)
        y, s, x, F = self._seen(R, u, given)
        w, k = self.cells.shape
        C, N = self._products
        e, h = self._pulls(y, s, C, N)
        L = _spin(R, F)
        torque = np.cross(s, e).sum(axis=1) + np.cross(x, h).sum(axis=1)
        l = np.einsum("wij,wj->wi", L, torque)
        W = np.einsum("wij,wajk->wiak", L, _skew(self.mean)).reshape(w, 3, 3 * k)
        one = np.broadcast_to(np.eye(3 * k), (w, 3 * k, 3 * k))
        Pi = _diagonal(np.swapaxes(R, 1, 2) @ (self.walls.axes[:, :, None] * R), k)
        Y = one + _column(_skew(x)) @ W  # ydot = Y dx
        S = Pi + _column(_skew(s)) @ W  # sdot = S dx
        M = np.swapaxes(S, 1, 2) @ (N @ S - 2.0 * C @ Y)
        across = _row(_skew(e)) @ (Pi + S) + _row(_skew(h)) @ (one + Y)
        m = self.mean.reshape(w, 3 * k)
        across = across + 2.0 * l[:, :, None] * m[:, None, :]
        M -= np.swapaxes(W, 1, 2) @ across
        along = np.einsum("wi,waj->waij", l, self.mean)
        along = along + np.einsum("wi,wai->wa", l, self.mean)[:, :, None, None] * np.eye(3)
        M += along.reshape(w, 3 * k, 3) @ W
        return self._to_world(R, 0.5 * (M + np.swapaxes(M, 1, 2)))

    def _to_world(self, R: np.ndarray, H: np.ndarray) -> np.ndarray:
        """R H_ab R^T of all blocks."""
        w, k = self.cells.shape
        rows = np.matmul(R[:, None], H.reshape(w, k, 3, 3 * k)).reshape(w, 3 * k, k, 3)
        return np.matmul(rows, np.swapaxes(R, 1, 2)[:, None]).reshape(w, 3 * k, 3 * k)

    def _gradients(self, u: np.ndarray) -> np.ndarray:
        """F of the entries' cells, (w, 3, 3)."""
        return np.eye(3) + np.einsum("wai,waj->wij", u[self.cells], self.mean)

    def _rotations(self, u: np.ndarray) -> np.ndarray:
        U, s, V = np.linalg.svd(self._gradients(u))
        U[:, :, 2] *= np.linalg.det(U @ V)[:, None]
        return U @ V

    def _seen(self, R, u, given: np.ndarray | None):
        """y, s, x (w, k, 3) in the frames R, and F."""
        local = u[self.cells]
        slip = self.walls.axes[:, None, :] * (local if given is None else local - given)
        x = np.einsum("wji,waj->wai", R, self.arm + local - local[:, :1])
        return x - self.arm, np.einsum("wji,waj->wai", R, slip), x, self._gradients(u)

    def _pulls(self, y, s, C, N):
        """e and h, (w, k, 3)."""
        w = len(y)
        y, flat = (z.reshape(w, -1, 1) for z in (y, s))
        e = np.matmul(C, y) - np.matmul(N, flat)
        return e.reshape(s.shape), np.matmul(np.swapaxes(C, 1, 2), flat).reshape(s.shape)


def _spin(R: np.ndarray, F: np.ndarray) -> np.ndarray:
    """(tr(S) I - S)^{-1}."""
    S = np.swapaxes(R, 1, 2) @ F
    S = 0.5 * (S + np.swapaxes(S, 1, 2))
    return np.linalg.inv(np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S)


def _skew(v: np.ndarray) -> np.ndarray:
    """[v]x of (..., 3)."""
    out = np.zeros((*v.shape, 3))
    out[..., 0, 1], out[..., 1, 0] = -v[..., 2], v[..., 2]
    out[..., 0, 2], out[..., 2, 0] = v[..., 1], -v[..., 1]
    out[..., 1, 2], out[..., 2, 1] = -v[..., 0], v[..., 0]
    return out


def _column(blocks: np.ndarray) -> np.ndarray:
    """(w, k, 3, 3) one below the other, (w, 3k, 3)."""
    return blocks.reshape(len(blocks), -1, 3)


def _row(blocks: np.ndarray) -> np.ndarray:
    """(w, k, 3, 3) side by side, (w, 3, 3k)."""
    return blocks.transpose(0, 2, 1, 3).reshape(len(blocks), 3, -1)


def _diagonal(block: np.ndarray, k: int) -> np.ndarray:
    """(w, 3, 3) k times along the diagonal, (w, 3k, 3k)."""
    out = np.zeros((len(block), k, 3, k, 3))
    for a in range(k):
        out[:, a, :, a] = block
    return out.reshape(len(block), 3 * k, 3 * k)
