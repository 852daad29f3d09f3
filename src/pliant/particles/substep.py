"""The start and the end of a substep of particles."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

import warp as wp


@wp.kernel
def predict(
    first: wp.int32,
    dt: wp.float64,
    damping: wp.float64,
    a: wp.array(dtype=wp.vec3d),
    free: wp.array(dtype=wp.vec3d),
    given: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    old: wp.array(dtype=wp.vec3d),
    ahead: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
):
    """old := u; u += dt (v + dt a) / (1 + dt damping), and held parts go where they are held."""
    i = first + wp.tid()
    one = wp.float64(1.0)
    old[i] = u[i]
    x = u[i] + (dt / (one + dt * damping)) * (v[i] + dt * a[i])
    u[i] = wp.cw_mul(free[i], x) + given[i]
    ahead[i] = u[i]


@wp.kernel
def finish(
    first: wp.int32,
    per_dt: wp.float64,
    old: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
):
    """The velocity of the way that was gone."""
    i = first + wp.tid()
    v[i] = per_dt * (u[i] - old[i])
