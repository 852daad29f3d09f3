"""What one depth view says about every node of a grid. A node writes to itself: no atomics."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp


@wp.kernel
def add_view(
    first: wp.int32,
    shape: wp.vec3i,
    origin: wp.vec3d,
    spacing: wp.float64,
    rotation: wp.mat33d,
    position: wp.vec3d,
    lens: wp.vec4d,  # fx, fy, cx, cy
    depth: wp.array2d(dtype=wp.float64),
    cosine: wp.array2d(dtype=wp.float64),
    empty: wp.array2d(dtype=wp.int32),
    jump: wp.float64,
    truncation: wp.float64,
    behind: wp.float64,
    total: wp.array(dtype=wp.float64),
    weight: wp.array(dtype=wp.float64),
    square: wp.array(dtype=wp.float64),
    views: wp.array(dtype=wp.int32),
    nothing: wp.array(dtype=wp.int32),
):
    """Add the node's projective distance, times the cosine of the surface's tilt, to its mean."""
    n = first + wp.tid()
    k = n % shape[2]
    j = (n / shape[2]) % shape[1]
    i = n / (shape[1] * shape[2])
    x = origin + spacing * wp.vec3d(wp.float64(i), wp.float64(j), wp.float64(k))
    q = rotation * (x - position)
    if q[2] <= wp.float64(0.0):
        return
    u = lens[0] * q[0] / q[2] + lens[2]
    v = lens[1] * q[1] / q[2] + lens[3]
    rows = depth.shape[0]
    columns = depth.shape[1]
    if u < wp.float64(0.0) or v < wp.float64(0.0):
        return
    c = wp.int32(u)
    r = wp.int32(v)
    if c >= columns - 1 or r >= rows - 1:
        return
    d00 = depth[r, c]
    d01 = depth[r, c + 1]
    d10 = depth[r + 1, c]
    d11 = depth[r + 1, c + 1]
    low = wp.min(wp.min(d00, d01), wp.min(d10, d11))
    high = wp.max(wp.max(d00, d01), wp.max(d10, d11))
    if high <= wp.float64(0.0):
        nothing[n] = nothing[n] + empty[r, c]
        return
    if low <= wp.float64(0.0) or high - low > jump:
        return  # the edge of something: which side a node is on cannot be told
    s = u - wp.float64(c)
    t = v - wp.float64(r)
    one = wp.float64(1.0)
    top = (one - s) * d00 + s * d01
    bottom = (one - s) * d10 + s * d11
    seen = (one - t) * top + t * bottom
    upper = (one - s) * cosine[r, c] + s * cosine[r, c + 1]
    lower = (one - s) * cosine[r + 1, c] + s * cosine[r + 1, c + 1]
    tilt = (one - t) * upper + t * lower
    d = (seen - wp.length(q)) * tilt
    if d <= -behind:
        return  # hidden by what was seen
    if d < truncation:
        views[n] = views[n] + 1
    d = wp.min(d, truncation)
    # the deeper behind the surface, the less this view knows: another sheet may lie there
    w = tilt * wp.min(one, wp.float64(2.0) * (behind + d) / behind)
    total[n] = total[n] + w * d
    weight[n] = weight[n] + w
    square[n] = square[n] + w * d * d
