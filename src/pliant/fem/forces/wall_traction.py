"""What a corotated body's own stress does at its weak walls: Nitsche's terms in turning frames.

Held by a penalty alone, a wall in the middle of cells slips, or is held so firmly that it holds the
cells as a whole. Nitsche's method takes the traction of the body's own stress into account, and
needs no more penalty than coercivity asks. In a cell with the frame R of its mean deformation
gradient, y_a = R^T (X_a + u_a) - X_a and the slip s_b = R^T P (u_b - g_b) of its nodes (P: held
components, g: given displacement),

    E = sum_ab (1/2 z_b . N_ba z_a - z_b . D_ba y_a - s_b . C_ba y_a),    z_b = G^T P (u_b - g_b),

C_ba and D_ba the shares of mu and lambda in integral_wall N_b T_a, T_a the linear stress on the
wall, sigma(y) n = sum_a T_a y_a, N lambda's penalty, and G the frame of the given displacement, in
which the wall itself has turned. Seen in the frames that is the linear method, so with the penalty
of mu (fem.cutting.walls) and the cell's own corotated energy it is positive however far the cell
has turned. In the frame of the rest mu's terms have no such bound (a clamped silicone block that
swings to 50 degrees found no balance); lambda's have it for any slip z and any dilatation. They see
the slip in the wall's frame because there it is linear in u: in the cell's, near a Poisson's ratio
of 1/2, it is one more stiff constraint that turns, and a step of a soft ball took 50 iterations of
Newton's method instead of 10. The traction it stands for is then that of the pressure across the
held wall instead of the turned cell, which differ where the wall slips, and there by their angle.

With e_b = sum_a C_ba y_a, k_b = sum_a (D_ba y_a - N_ba z_a), h_a = sum_b (C_ba^T s_b + D_ba^T z_b),
x_a = R^T (X_a + u_a), dR = R [w]x of w = sum_a W_a dx_a (fem.forces.corotation_kernels), Pi =
R^T P R and Q = G^T P R,

    f_a = R (-Pi e_a - h_a + l x m_a) - P G k_a,   l = L tau,   tau = sum_a (s_a x e_a + x_a x h_a),

and the second derivative along dx, ydot_a = dx_a + x_a x w, sdot_b = Pi dx_b + s_b x w,
zdot_b = Q dx_b,

    zdot . N zdot - 2 zdot . D ydot - 2 sdot . C ydot
    + w . sum_a ((Pi dx_a + sdot_a) x e_a + (dx_a + ydot_a) x h_a)
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
from pliant.fem.forces.wall_operator import WallOperator

ENTRIES = 20
"""Entries per thread from which these kernels are split: each reads 200 blocks."""


@wp.struct
class TractionData:
    """Of the walls' entries (w,): nodes, rest arms (w, k), mean gradients; C, D, N by (b, a)."""

    k: wp.int32
    corners: wp.array2d(dtype=wp.int32)
    arm: wp.array2d(dtype=wp.vec3d)
    mean: wp.array2d(dtype=wp.vec3d)
    axes: wp.array(dtype=wp.vec3d)
    C: wp.array2d(dtype=wp.mat33d)
    D: wp.array2d(dtype=wp.mat33d)
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
    wall: wp.array(dtype=wp.mat33d),
    y: wp.array2d(dtype=wp.vec3d),
    s: wp.array2d(dtype=wp.vec3d),
    z: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
    energy: wp.array(dtype=wp.float64),
):
    """out[w, a] = f_a of the entry, energy[w] = E; wall[w] = G; y, s, z are left."""
    w = first + wp.tid()
    k = d.k
    P = wp.diag(d.axes[w])
    origin = u[d.corners[w, 0]]
    F = _mean_gradient(d, w, u)
    R = rotation(F)
    back = wp.transpose(R)
    Pi = back * P * R
    G = wall[w]
    for a in range(k):
        moved = u[d.corners[w, a]]
        y[w, a] = back * (d.arm[w, a] + moved - origin) - d.arm[w, a]
        s[w, a] = back * (P * (moved - given[w, a]))
        z[w, a] = wp.transpose(G) * (P * (moved - given[w, a]))
    torque = wp.vec3d()
    total = wp.float64(0.0)
    for a in range(k):
        e = wp.vec3d()
        pushed = wp.vec3d()
        h = wp.vec3d()
        held = wp.vec3d()
        for b in range(k):
            e += d.C[w, a * k + b] * y[w, b]
            pushed += d.D[w, a * k + b] * y[w, b]
            h += wp.transpose(d.C[w, b * k + a]) * s[w, b]
            h += wp.transpose(d.D[w, b * k + a]) * z[w, b]
            held += d.N[w, a * k + b] * z[w, b]
        total += wp.dot(z[w, a], wp.float64(0.5) * held - pushed) - wp.dot(s[w, a], e)
        torque += wp.cross(s[w, a], e) + wp.cross(d.arm[w, a] + y[w, a], h)
        out[w, a] = -(Pi * e + h + back * (P * (G * (pushed - held))))
    l = spin_matrix(R, F) * torque
    for a in range(k):
        out[w, a] = R * (out[w, a] + wp.cross(l, d.mean[w, a]))
    energy[w] = total


@wp.kernel
def _warped_blocks(
    first: wp.int32,
    d: TractionData,
    u: wp.array(dtype=wp.vec3d),
    wall: wp.array(dtype=wp.mat33d),
    out: wp.array2d(dtype=wp.mat33d),
):
    """out[w, b k + a] = P G N_ba G^T P - B_ba - B_ab^T, B = P (R C + G D) R^T: frames stand still.

    wall[w] = G.
    """
    w = first + wp.tid()
    R = rotation(_mean_gradient(d, w, u))
    back = wp.transpose(R)
    turned = wp.diag(d.axes[w]) * R
    held = wp.diag(d.axes[w]) * wall[w]
    for b in range(d.k):
        for a in range(d.k):
            there = (turned * d.C[w, b * d.k + a] + held * d.D[w, b * d.k + a]) * back
            here = (turned * d.C[w, a * d.k + b] + held * d.D[w, a * d.k + b]) * back
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
        d.C, d.D, d.N = (zeros((count, k * k), wp.mat33d) for _ in range(3))
        self._y, self._s, self._z, self._out, self._still = (
            zeros((count, k), wp.vec3d) for _ in range(5)
        )
        self._upright = to_device(self._frames(None), wp.mat33d)
        self._energy = zeros(count, wp.float64)
        self._blocks = zeros((count, k * k), wp.mat33d)
        self._by_moduli = tuple(
            np.ascontiguousarray(C.transpose(0, 1, 3, 2, 4)).reshape(count, 3 * k, 3 * k)
            for C in (walls.traction_mu, walls.traction_lam, walls.flux_lam)
        )
        self._kept: list[tuple[wp.array, np.ndarray, np.ndarray]] = []

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Moduli (cells,) [Pa]."""
        self._kept.clear()
        c, walls = (slice(None), None, None, None, None), self.walls
        lam, mu = (x[walls.cell] for x in (lam, mu))
        for on_device, host in (
            (self._data.C, mu[c] * walls.traction_mu), (self._data.D, lam[c] * walls.traction_lam),
            (self._data.N, lam[c] * walls.flux_lam),
        ):  # fmt: skip
            on_device.assign(host.reshape(len(host), -1, 3, 3))
        self._products = self.products(lam, mu)

    def products(self, lam: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, ...]:
        """C, D and N (w, 3k, 3k) for moduli (w,) of the walls' cells."""
        c = (slice(None), None, None)
        C, D, N = self._by_moduli
        return mu[c] * C, lam[c] * D, lam[c] * N

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
            [self._data, u, held, self._wall(given), self._y, self._s, self._z, self._out,
             self._energy], grain=ENTRIES,
        )  # fmt: skip

    def _wall(self, given: np.ndarray | None) -> wp.array:
        """G of the entries on the device."""
        return self._upright if given is None else to_device(self._frames(given), wp.mat33d)

    def pull_of_given(self, u: wp.array, given: np.ndarray | None) -> np.ndarray:
        """dE/dg, (w, k, 3): the force with which the walls hold the body, by its own stress."""
        host = u.numpy()
        R, G = self._rotations(host), self._frames(given)
        y, s, z, _, _ = self._seen(R, G, host, given)
        e, across, _ = self._pulls(y, s, z, *self._products)
        pull = np.einsum("wij,wbj->wbi", R, e) + np.einsum("wij,wbj->wbi", G, across)
        if given is None:
            return self.walls.axes[:, None, :] * pull
        # where given displacements turn the wall, its slip is seen from elsewhere
        F = np.eye(3) + np.einsum("wai,waj->wij", given, self.mean)
        l = np.einsum("wij,wj->wi", _spin(G, F), np.cross(z, across).sum(axis=1))
        turn = np.einsum("wij,waj->wai", G, np.cross(l[:, None, :], self.mean))
        return self.walls.axes[:, None, :] * pull + turn

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
            given_data = [self._data, u, self._wall(given), self._blocks]
            launch(_warped_blocks, len(self.cells), given_data, grain=ENTRIES)
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
        C, D, N = self._by_moduli
        none = np.zeros_like(N)
        return (self.gradient(R, host, given, none, D, N),
                self.gradient(R, host, given, C, none, none))  # fmt: skip

    def gradient(self, R, u, given: np.ndarray | None, C, D, N) -> np.ndarray:
        """dE/du (w, k, 3) in NumPy, complex too; R (w, 3, 3) of the entries' cells."""
        G = self._frames(given)
        y, s, z, x, F = self._seen(R, G, u, given)
        e, across, h = self._pulls(y, s, z, C, D, N)
        torque = np.cross(s, e).sum(axis=1) + np.cross(x, h).sum(axis=1)
        l = np.einsum("wij,wj->wi", _spin(R, F), torque)
        held = np.einsum("wij,waj->wai", R, e) + np.einsum("wij,waj->wai", G, across)
        held = self.walls.axes[:, None, :] * held  # P R e = R Pi e
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
        R, G = self._rotations(u), self._frames(given)
        y, s, z, x, F = self._seen(R, G, u, given)
        w, k = self.cells.shape
        C, D, N = self._products
        e, _, h = self._pulls(y, s, z, C, D, N)
        L = _spin(R, F)
        torque = np.cross(s, e).sum(axis=1) + np.cross(x, h).sum(axis=1)
        l = np.einsum("wij,wj->wi", L, torque)
        W = np.einsum("wij,wajk->wiak", L, _skew(self.mean)).reshape(w, 3, 3 * k)
        one = np.broadcast_to(np.eye(3 * k), (w, 3 * k, 3 * k))
        Pi = _diagonal(np.swapaxes(R, 1, 2) @ (self.walls.axes[:, :, None] * R), k)
        Y = one + _column(_skew(x)) @ W  # ydot = Y dx
        S = Pi + _column(_skew(s)) @ W  # sdot = S dx
        Q = _diagonal(np.swapaxes(G, 1, 2) @ (self.walls.axes[:, :, None] * R), k)  # zdot = Q dx
        M = np.swapaxes(Q, 1, 2) @ (N @ Q - 2.0 * D @ Y) - 2.0 * np.swapaxes(S, 1, 2) @ C @ Y
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
        return _polar(self._gradients(u))

    def _frames(self, given: np.ndarray | None) -> np.ndarray:
        """G (w, 3, 3): how the given displacement turns the entries' cells."""
        if given is None:
            return np.broadcast_to(np.eye(3), (len(self.cells), 3, 3))
        return _polar(np.eye(3) + np.einsum("wai,waj->wij", given, self.mean))

    def _seen(self, R, G, u, given: np.ndarray | None):
        """y, s, x (w, k, 3) in the frames R, z in the frames G, as y, s, z, x; and F."""
        local = u[self.cells]
        slip = self.walls.axes[:, None, :] * (local if given is None else local - given)
        x = np.einsum("wji,waj->wai", R, self.arm + local - local[:, :1])
        s, z = (np.einsum("wji,waj->wai", frame, slip) for frame in (R, G))
        return x - self.arm, s, z, x, self._gradients(u)

    def _pulls(self, y, s, z, C, D, N):
        """e, k and h, (w, k, 3)."""
        shape, w = y.shape, len(y)
        y, s, z = (field.reshape(w, -1, 1) for field in (y, s, z))
        e, across = np.matmul(C, y), np.matmul(D, y) - np.matmul(N, z)
        h = np.matmul(np.swapaxes(C, 1, 2), s) + np.matmul(np.swapaxes(D, 1, 2), z)
        return e.reshape(shape), across.reshape(shape), h.reshape(shape)


def _polar(F: np.ndarray) -> np.ndarray:
    """The rotations of F (w, 3, 3)."""
    U, _, V = np.linalg.svd(F)
    U[:, :, 2] *= np.linalg.det(U @ V)[:, None]
    return U @ V


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
