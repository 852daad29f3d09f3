"""Shape matching on the device: a cluster finds its goal, a node goes to the mean of its goals.

A cluster reads its members and writes its own frame; a node reads its clusters' frames and writes
itself: no sum depends on threads.
"""

# ruff: noqa: UP018 (int(0) is a variable in Warp's kernel language, 0 a constant)
# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.fem.forces.polar import rotation

WARM = wp.constant(wp.float64(1.0e-9))
"""Weight of the last rotation in a moment matrix: it decides where the members leave R open, in a
cluster that has shrunk to a point or a line."""

THIN = wp.constant(wp.float64(0.5))
"""Volume of a linear goal, over its own, below which it is no longer blown up to keep it: what is
squeezed flat would grow in its plane without end."""


@wp.struct
class ClusterData:
    """Members of clusters, by `start`, and the clusters of nodes, by `node_start`.

    share: mass of a member in its cluster [kg]; q: its place at rest about the centre; square,
    mixed: the squares and products of q, without their means; _basis: these nine numbers times the
    inverse of their moments, what a fit weighs a member's place with; moment: sum m q q^T.
    member_of, place: cluster and member number of a node's entries. stiffness: 1 / T^2 [1/s^2];
    answer: the share of the way to the goal in a substep; beta: of the fit in a goal.
    """

    start: wp.array(dtype=wp.int32)
    member: wp.array(dtype=wp.int32)
    share: wp.array(dtype=wp.float64)
    q: wp.array(dtype=wp.vec3d)
    square: wp.array(dtype=wp.vec3d)
    mixed: wp.array(dtype=wp.vec3d)
    linear_basis: wp.array(dtype=wp.vec3d)
    square_basis: wp.array(dtype=wp.vec3d)
    mixed_basis: wp.array(dtype=wp.vec3d)
    moment: wp.array(dtype=wp.mat33d)
    beta: wp.array(dtype=wp.float64)
    node_start: wp.array(dtype=wp.int32)
    member_of: wp.array(dtype=wp.int32)
    place: wp.array(dtype=wp.int32)
    weight: wp.array(dtype=wp.float64)
    stiffness: wp.array(dtype=wp.float64)
    answer: wp.array(dtype=wp.float64)
    flat: wp.int32
    quadratic: wp.int32


@wp.func
def best_frame(d: ClusterData, A: wp.mat33d, c: int, last: wp.mat33d) -> wp.mat33d:
    """The rotation of a moment matrix A = sum m p q^T; in the plane about z."""
    M = A + (WARM * wp.trace(d.moment[c])) * last
    if d.flat == 1:
        M[2, 2] = M[2, 2] + wp.abs(M[0, 0]) + wp.abs(M[0, 1]) + wp.abs(M[1, 0]) + wp.abs(M[1, 1])
    return rotation(M)


@wp.kernel
def match(
    first: wp.int32,
    d: ClusterData,
    u: wp.array(dtype=wp.vec3d),
    X: wp.array(dtype=wp.vec3d),
    S: wp.array(dtype=wp.mat33d),
    R: wp.array(dtype=wp.mat33d),
    centre: wp.array(dtype=wp.vec3d),
    T: wp.array(dtype=wp.mat33d),
    T_square: wp.array(dtype=wp.mat33d),
    T_mixed: wp.array(dtype=wp.mat33d),
    fit: wp.array(dtype=wp.mat33d),
):
    """Centre, rotation and goal T of each cluster; fit: the best linear map. S: plastic stretch."""
    c = first + wp.tid()
    one = wp.float64(1.0)
    total = wp.float64(0.0)
    middle = wp.vec3d()
    for e in range(d.start[c], d.start[c + 1]):
        n = d.member[e]
        total += d.share[e]
        middle += d.share[e] * (X[n] + u[n])
    middle = middle / total
    A = wp.mat33d()
    L = wp.mat33d()
    B = wp.mat33d()
    C = wp.mat33d()
    for e in range(d.start[c], d.start[c + 1]):
        n = d.member[e]
        p = d.share[e] * (X[n] + u[n] - middle)
        A += wp.outer(p, d.q[e])
        if d.quadratic == 1:
            L += wp.outer(p, d.linear_basis[e])
            B += wp.outer(p, d.square_basis[e])
            C += wp.outer(p, d.mixed_basis[e])
    P = S[c]
    A = A * P  # q is P q, P symmetric
    turn = best_frame(d, A, c, R[c])
    R[c] = turn
    centre[c] = middle
    beta = d.beta[c]
    least = (WARM * wp.trace(d.moment[c])) * wp.identity(n=3, dtype=wp.float64)
    G = A * wp.inverse(P * d.moment[c] * P + least)
    if d.flat == 1:
        G[2, 2] = one
    fit[c] = G
    if d.quadratic == 1:
        G = L
        if d.flat == 1:
            G[2, 2] = one
        T_square[c] = beta * B
        T_mixed[c] = beta * C
    else:
        volume = wp.max(wp.determinant(G), THIN)
        if d.flat == 1:
            side = one / wp.sqrt(volume)
            G = side * G
            G[2, 2] = one
        else:
            G = wp.pow(volume, -one / wp.float64(3.0)) * G
    T[c] = (beta * G + (one - beta) * turn) * P


@wp.func
def goal(
    d: ClusterData,
    e: int,
    c: int,
    centre: wp.array(dtype=wp.vec3d),
    T: wp.array(dtype=wp.mat33d),
    T_square: wp.array(dtype=wp.mat33d),
    T_mixed: wp.array(dtype=wp.mat33d),
) -> wp.vec3d:
    """Where a cluster wants its member e."""
    g = centre[c] + T[c] * d.q[e]
    if d.quadratic == 1:
        g += T_square[c] * d.square[e] + T_mixed[c] * d.mixed[e]
    return g


@wp.kernel
def approach(
    first: wp.int32,
    d: ClusterData,
    X: wp.array(dtype=wp.vec3d),
    centre: wp.array(dtype=wp.vec3d),
    T: wp.array(dtype=wp.mat33d),
    T_square: wp.array(dtype=wp.mat33d),
    T_mixed: wp.array(dtype=wp.mat33d),
    free: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
):
    """Nodes go towards the goals of their clusters, each by its share of their mass."""
    n = first + wp.tid()
    x = X[n] + u[n]
    way = wp.vec3d()
    for k in range(d.node_start[n], d.node_start[n + 1]):
        c = d.member_of[k]
        g = goal(d, d.place[k], c, centre, T, T_square, T_mixed)
        way += (d.weight[k] * d.answer[c]) * (g - x)
    u[n] = u[n] + wp.cw_mul(free[n], way)


@wp.kernel
def cluster_energies(
    first: wp.int32,
    d: ClusterData,
    X: wp.array(dtype=wp.vec3d),
    centre: wp.array(dtype=wp.vec3d),
    T: wp.array(dtype=wp.mat33d),
    T_square: wp.array(dtype=wp.mat33d),
    T_mixed: wp.array(dtype=wp.mat33d),
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.float64),
):
    """sum m |x - g|^2 / (2 T^2) of each cluster [J]."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    for e in range(d.start[c], d.start[c + 1]):
        n = d.member[e]
        gap = goal(d, e, c, centre, T, T_square, T_mixed) - X[n] - u[n]
        total += d.share[e] * wp.dot(gap, gap)
    out[c] = wp.float64(0.5) * d.stiffness[c] * total


@wp.kernel
def flow(
    first: wp.int32,
    yields: wp.float64,
    rate: wp.float64,
    limit: wp.float64,
    flat: wp.int32,
    R: wp.array(dtype=wp.mat33d),
    fit: wp.array(dtype=wp.mat33d),
    S: wp.array(dtype=wp.mat33d),
):
    """Plastic stretch: where |R^T A - I| exceeds yields, S grows by rate (R^T A - I) S up to limit.

    S stays symmetric and keeps its volume; A is the best linear map of the shape that S has made.
    """
    c = first + wp.tid()
    one = wp.float64(1.0)
    identity = wp.identity(n=3, dtype=wp.float64)
    E = wp.transpose(R[c]) * fit[c] - identity
    E = wp.float64(0.5) * (E + wp.transpose(E))
    size = wp.sqrt(wp.ddot(E, E))
    if size > yields:
        N = (identity + wp.min(rate, one) * E) * S[c]
        N = wp.float64(0.5) * (N + wp.transpose(N))
        D = N - identity
        far = wp.sqrt(wp.ddot(D, D))
        if far > limit:
            N = identity + (limit / far) * D
        volume = wp.max(wp.determinant(N), THIN)
        if flat == 1:
            N[2, 2] = one
            volume = wp.max(wp.determinant(N), THIN)
            N = N / wp.sqrt(volume)
            N[2, 2] = one
        else:
            N = wp.pow(volume, -one / wp.float64(3.0)) * N
        S[c] = N
