"""Rotations of deformation gradients: exact, proper and differentiable everywhere."""

import numpy as np
import pytest
import warp as wp

from pliant.fem.forces.polar import rotation, rotation_adjoint, rotation_derivative


@wp.kernel
def _rotate(F: wp.array(dtype=wp.mat33d), R: wp.array(dtype=wp.mat33d)):
    i = wp.tid()
    R[i] = rotation(F[i])


@wp.kernel
def _differentiate(
    F: wp.array(dtype=wp.mat33d),
    dF: wp.array(dtype=wp.mat33d),
    dR: wp.array(dtype=wp.mat33d),
    F_bar: wp.array(dtype=wp.mat33d),
):
    i = wp.tid()
    R = rotation(F[i])
    dR[i] = rotation_derivative(R, F[i], dF[i])
    F_bar[i] = rotation_adjoint(R, F[i], dF[i])


def rotations(F):
    F = np.atleast_3d(np.asarray(F, float)).reshape(-1, 3, 3)
    R = wp.zeros(len(F), dtype=wp.mat33d, device="cpu")
    wp.launch(_rotate, len(F), inputs=[wp.array(F, dtype=wp.mat33d, device="cpu"), R], device="cpu")
    return R.numpy()


def derivatives(F, dF):
    """dR in the direction dF, and F_bar for R_bar = dF."""
    arrays = [wp.array(np.asarray(x, float).reshape(-1, 3, 3), dtype=wp.mat33d, device="cpu")
              for x in (F, dF)]  # fmt: skip
    out = [wp.zeros(len(arrays[0]), dtype=wp.mat33d, device="cpu") for _ in range(2)]
    wp.launch(_differentiate, len(arrays[0]), inputs=[*arrays, *out], device="cpu")
    return out[0].numpy(), out[1].numpy()


def turn(axis, angle):
    a = np.asarray(axis, float) / np.linalg.norm(axis)
    W = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    return np.eye(3) + np.sin(angle) * W + (1 - np.cos(angle)) * W @ W


REGULAR = {
    "identity": np.eye(3),
    "one stretch": np.diag([1.0, 1.0, 2.0]),
    "half turn": turn((0, 0, 1), np.pi),
    "half turn, oblique": turn((1, 2, 3), np.pi),
    "half turn, stretched": turn((1, 2, 3), np.pi) @ np.diag([1.0, 1.0, 2.0]),
    "huge": 1e12 * turn((1, 0, 1), 1.0),
    "tiny": 1e-12 * turn((1, 0, 1), 1.0),
    "flat": turn((1, 1, 0), 2.0) @ np.diag([1.0, 0.5, 1e-9]),
}
SINGULAR = {
    "rank one": np.outer([1.0, 2.0, 3.0], [0.5, -1.0, 0.2]),
    "rank two": turn((0, 1, 1), 0.7) @ np.diag([1.0, 0.3, 0.0]),
    "zero": np.zeros((3, 3)),
    "inverted": np.diag([1.0, 1.0, -1.0]),
    "point inversion": -np.eye(3),
    "inverted, oblique": turn((3, 1, 2), 1.3) @ np.diag([2.0, 1.0, -0.1]),
}
ALL = {**REGULAR, **SINGULAR}


@pytest.mark.parametrize("name", ALL)
def test_proper_and_orthogonal(name):
    R = rotations(ALL[name])[0]
    assert np.abs(R.T @ R - np.eye(3)).max() < 5e-14
    assert np.linalg.det(R) == pytest.approx(1.0, abs=5e-14)


@pytest.mark.parametrize("name", ALL)
def test_stretch_is_symmetric_and_product_exact(name):
    F = ALL[name]
    R = rotations(F)[0]
    S = R.T @ F
    size = max(np.linalg.norm(F), 1e-300)
    assert np.abs(S - S.T).max() < 5e-14 * size
    S = (S + S.T) / 2
    assert np.linalg.norm(R @ S - F) < 5e-14 * size
    # R maximises tr(R^T F) over the rotations: by the SVD, s1 + s2 + sign(det F) s3
    s = np.linalg.svd(F, compute_uv=False)
    best = s[0] + s[1] + np.sign(np.linalg.det(F)) * s[2]
    assert np.trace(S) == pytest.approx(best, abs=1e-13 * size)


@pytest.mark.parametrize("name", ["identity", "one stretch", "half turn", "half turn, oblique"])
def test_exact_rotations(name):
    U = ALL[name] if name != "one stretch" else np.eye(3)
    assert np.abs(rotations(ALL[name])[0] - U).max() < 5e-14


def test_random_gradients_against_the_singular_value_decomposition():
    F = np.random.default_rng(0).normal(size=(2000, 3, 3))
    U, s, Vt = np.linalg.svd(F)
    flip = np.sign(np.linalg.det(F))
    U[:, :, 2] *= flip[:, None]
    apart = (s[:, 1] + flip * s[:, 2]) > 1e-2  # else R is nearly arbitrary
    assert apart.mean() > 0.9
    assert np.abs(rotations(F)[apart] - (U @ Vt)[apart]).max() < 1e-12


@pytest.mark.parametrize("name", [n for n in REGULAR if n not in ("huge", "tiny", "flat")])
def test_derivative_equals_differences(name):
    """At repeated stretches too, where a derivative through singular vectors divides by zero."""
    rng = np.random.default_rng(1)
    F, h = REGULAR[name], 1e-5
    for _ in range(5):
        dF = rng.normal(size=(3, 3))
        dR, _ = derivatives(F, dF)
        near = rotations(np.stack([F + h * dF, F - h * dF]))
        assert np.abs(dR[0] - (near[0] - near[1]) / (2 * h)).max() < 1e-8


@pytest.mark.parametrize("name", ALL)
def test_derivatives_are_finite_and_adjoint(name):
    rng = np.random.default_rng(2)
    dF, R_bar = rng.normal(size=(2, 3, 3))
    dR, _ = derivatives(ALL[name], dF)
    _, F_bar = derivatives(ALL[name], R_bar)
    assert np.isfinite(dR).all()
    assert np.isfinite(F_bar).all()
    left, right = (dR[0] * R_bar).sum(), (dF * F_bar[0]).sum()
    assert left == pytest.approx(right, rel=1e-10, abs=1e-12)
