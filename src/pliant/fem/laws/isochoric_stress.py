"""Closed-form principal stresses of laws psi(i1, i2) + U(J) in the isochoric invariants.

With i1 = J^(-2/3) I1, i2 = J^(-4/3) I2:
d i1 / d l = 2 J^(-2/3) (l - I1 / (3 l)),  d i2 / d l = 2 J^(-4/3) (l (I1 - l^2) - 2 I2 / (3 l)),
d J / d l = J / l.
"""


def isochoric_stresses(a, b, c, slopes, pressure):
    """(P1, P2, P3); slopes(i1, i2) = d psi / d (i1, i2), pressure(J) = U'(J)."""
    J = a * b * c
    I1 = a * a + b * b + c * c
    I2 = a * a * b * b + b * b * c * c + c * c * a * a
    r = J ** (-2.0 / 3.0)
    d1, d2 = slopes(r * I1, r * r * I2)
    u = pressure(J)
    return tuple(
        2.0 * r * d1 * (x - I1 / (3.0 * x))
        + 2.0 * r * r * d2 * (x * (I1 - x * x) - 2.0 * I2 / (3.0 * x))
        + u * J / x
        for x in (a, b, c)
    )
