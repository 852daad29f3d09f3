"""The geometric frame against NumPy's QR, its derivative against differences."""

import numpy as np
import pytest
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.forces.frames import qr_rotation, qr_rotation_adjoint, qr_rotation_derivative


@wp.kernel
def _frames(first: wp.int32, F: wp.array(dtype=wp.mat33d), Q: wp.array(dtype=wp.mat33d)):
    i = first + wp.tid()
    Q[i] = qr_rotation(F[i])


@wp.kernel
def _changes(
    first: wp.int32,
    F: wp.array(dtype=wp.mat33d),
    dF: wp.array(dtype=wp.mat33d),
    W: wp.array(dtype=wp.mat33d),
    dQ: wp.array(dtype=wp.mat33d),
    F_bar: wp.array(dtype=wp.mat33d),
):
    i = first + wp.tid()
    Q = qr_rotation(F[i])
    dQ[i] = qr_rotation_derivative(Q, F[i], dF[i])
    F_bar[i] = qr_rotation_adjoint(Q, F[i], W[i])


def frames(F):
    Q = zeros(len(F), wp.mat33d)
    launch(_frames, len(F), [to_device(F, wp.mat33d), Q])
    return Q.numpy()


def changes(F, dF, W):
    dQ, F_bar = zeros(len(F), wp.mat33d), zeros(len(F), wp.mat33d)
    given = [to_device(A, wp.mat33d) for A in (F, dF, W)]
    launch(_changes, len(F), [*given, dQ, F_bar])
    return dQ.numpy(), F_bar.numpy()


def require_rotations(Q, tolerance=1e-14):
    assert np.abs(np.swapaxes(Q, 1, 2) @ Q - np.eye(3)).max() < tolerance
    assert np.abs(np.linalg.det(Q) - 1.0).max() < tolerance


def test_agrees_with_numpy_qr():
    F = np.random.default_rng(1).normal(size=(500, 3, 3))
    Q, U = np.linalg.qr(F)
    sign = np.sign(np.diagonal(U, axis1=1, axis2=2)).copy()
    # the first two diagonal entries positive, the third axis by det = +1 (half of F are inverted)
    sign[:, 2] = np.linalg.det(Q) * sign[:, 0] * sign[:, 1]
    ours = frames(F)
    require_rotations(ours)
    # Gram-Schmidt loses the inverse of the angle between the first two columns
    assert np.abs(ours - Q * sign[:, None, :]).max() < 1e-12


def test_frame_turns_with_rigid_motions():
    rng = np.random.default_rng(2)
    F = rng.normal(size=(100, 3, 3))
    R = frames(rng.normal(size=(100, 3, 3)))
    assert np.abs(frames(R) - R).max() < 1e-14
    assert np.abs(frames(R @ F) - R @ frames(F)).max() < 1e-12
    assert np.abs(frames(1e-120 * F) - frames(F)).max() < 1e-12
    assert np.abs(frames(1e160 * F) - frames(F)).max() < 1e-12


def test_edges_of_a_tetrahedron():
    """With the frame B of two rest edges, Q(F B) B^T is the seed's rotation of those edges."""
    rng = np.random.default_rng(3)
    rest, now = rng.normal(size=(2, 50, 4, 3))

    def frame(x):
        p, q = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
        r0 = p / np.linalg.norm(p, axis=1, keepdims=True)
        n = np.cross(p, q)
        r2 = n / np.linalg.norm(n, axis=1, keepdims=True)
        return np.stack([r0, np.cross(r2, r0), r2], axis=2)

    edges = [np.swapaxes(x[:, 1:] - x[:, :1], 1, 2) for x in (rest, now)]
    F = edges[1] @ np.linalg.inv(edges[0])
    B = frame(rest)
    expected = frame(now) @ np.swapaxes(B, 1, 2)
    ours = frames(F @ B) @ np.swapaxes(B, 1, 2)
    assert np.abs(ours - expected).max() < 1e-10


DEGENERATE = {
    "zero": np.zeros((3, 3)),
    "first column zero": [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
    "second column zero": [[1, 0, 0], [0, 0, 2], [0, 0, 0]],
    "columns parallel": [[1, 2, 3], [1, 2, 3], [1, 2, 3]],
    "first two parallel": [[1, -1, 0], [0, 0, 1], [0, 0, 0]],
    "only the second": [[0, 1, 0], [0, 1, 0], [0, 0, 0]],
    "only the third": [[0, 0, 0], [0, 0, 0], [0, 0, 5]],
    "inverted": np.diag([1.0, 1.0, -1.0]),
    "flattened": np.diag([1.0, 1.0, 0.0]),
    "tiny": 1e-300 * np.eye(3),
    "huge": 1e300 * np.eye(3),
    "nearly parallel": [[1, 1, 0], [0, 1e-9, 0], [0, 0, 1]],
    "nearly zero column": [[1e-14, 0, 0], [0, 1, 0], [0, 0, 1]],
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_gradients_have_a_proper_frame(name):
    F = np.array(DEGENERATE[name], float)[None]
    Q = frames(F)
    require_rotations(Q)
    change, adjoint = changes(F, np.ones((1, 3, 3)), np.ones((1, 3, 3)))
    assert np.isfinite(change).all()
    assert np.isfinite(adjoint).all()
    expected = {
        "zero": np.eye(3), "first column zero": np.eye(3)[:, [2, 0, 1]],
        "second column zero": [[1, 0, 0], [0, 0, 1], [0, -1, 0]], "only the third": np.eye(3),
        "inverted": np.eye(3), "flattened": np.eye(3), "tiny": np.eye(3), "huge": np.eye(3),
        "nearly parallel": np.eye(3), "nearly zero column": np.eye(3),
    }  # fmt: skip
    if name in expected:
        assert np.abs(Q[0] - expected[name]).max() < 1e-12


def test_derivative_by_taylor():
    rng = np.random.default_rng(4)
    F = np.eye(3) + 0.4 * rng.normal(size=(200, 3, 3))
    F = F[np.linalg.norm(np.cross(F[:, :, 0], F[:, :, 1]), axis=1) > 0.3]
    dF = rng.normal(size=F.shape)
    dQ, _ = changes(F, dF, dF)
    steps = np.array([1e-2, 1e-3])
    errors = [np.abs(frames(F + t * dF) - frames(F) - t * dQ).mean() for t in steps]
    assert np.log(errors[0] / errors[1]) / np.log(10.0) == pytest.approx(2.0, abs=0.1)
    t = 1e-5
    central = (frames(F + t * dF) - frames(F - t * dF)) / (2.0 * t)
    assert np.abs(central - dQ).max() < 1e-7 * np.abs(dQ).max()


def test_adjoint_is_the_transpose():
    rng = np.random.default_rng(5)
    special = [np.array(F, float) for name, F in DEGENERATE.items() if name not in ("tiny", "huge")]
    ordinary = rng.normal(size=(300, 3, 3))
    for F in (ordinary, np.array(special)):
        dF, W = rng.normal(size=(2, *F.shape))
        dQ, F_bar = changes(F, dF, W)
        left = np.einsum("nij,nij->n", W, dQ)
        right = np.einsum("nij,nij->n", F_bar, dF)
        scale = np.linalg.norm(F_bar, axis=(1, 2)) * np.linalg.norm(dF, axis=(1, 2))
        assert np.isfinite(scale).all()
        assert (np.abs(left - right) <= 1e-10 * scale).all()
