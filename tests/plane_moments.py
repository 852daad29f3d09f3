"""An independent integrator: simplices cut by a plane, quadrature on each simplex."""

import itertools

import numpy as np


def simplex_moments(simplex):
    dim = len(simplex) - 1
    at, weight = np.polynomial.legendre.leggauss(6)
    at, weight = (at + 1) / 2, weight / 2
    total = np.zeros((3,) * dim)
    jacobian = abs(np.linalg.det(simplex[1:] - simplex[0]))
    for index in itertools.product(range(6), repeat=dim):
        barycentric, left, w = [], 1.0, jacobian
        for k, i in enumerate(index):
            barycentric.append(left * at[i])
            w *= weight[i] * (1 - at[i]) ** (dim - 1 - k)
            left *= 1 - at[i]
        p = simplex[0] * left + np.array(barycentric) @ simplex[1:]
        powers = [p[k] ** np.arange(3) for k in range(dim)]
        value = powers[0]
        for more in powers[1:]:
            value = np.multiply.outer(value, more)
        total += w * value
    return total


def clip_simplex(simplex, values):
    """Simplices that cover the part of a simplex where a linear function is negative."""
    inside = [i for i in range(len(values)) if values[i] < 0]
    outside = [i for i in range(len(values)) if values[i] >= 0]
    if not inside:
        return []

    def crossing(i, j):
        t = values[i] / (values[i] - values[j])
        return simplex[i] + t * (simplex[j] - simplex[i])

    # crossings form a grid (inside vertex, outside vertex); each monotone path through it,
    # starting with the column of the inside vertices themselves, is one simplex
    pieces = []
    columns = [None, *outside]
    steps = len(inside) - 1 + len(columns) - 1
    for ups in itertools.combinations(range(steps), len(inside) - 1):
        row = column = 0
        points = [simplex[inside[0]]]
        for step in range(steps):
            row, column = (row + 1, column) if step in ups else (row, column + 1)
            i, j = inside[row], columns[column]
            points.append(simplex[i] if j is None else crossing(i, j))
        pieces.append(np.array(points))
    return pieces


def plane_moments(normal, offset):
    dim = len(normal)
    total = np.zeros((3,) * dim)
    for order in itertools.permutations(range(dim)):
        simplex = np.zeros((dim + 1, dim))
        for k, axis in enumerate(order):
            simplex[k + 1 :, axis] = 1
        for piece in clip_simplex(simplex, simplex @ normal - offset):
            total += simplex_moments(piece)
    return total
