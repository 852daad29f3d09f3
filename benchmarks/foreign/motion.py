"""Motion of a clamped neo-Hookean body under gravity, released or jerked, by NGSolve.

    psi = mu/2 (I1 - 3) - mu ln J + lambda/2 ln^2 J,

tetrahedra of order 2 or 3, consistent mass, generalised-alpha (Chung and Hulbert, 1993) with the
balance (1 - am) M a' + am M a + f((1 - af) u' + af u) = M g, solved for w = (1 - af) u' + af u by
Newton's method. Its matrix is kept while the corrections shrink by `KEEP` or better.
"""

from dataclasses import dataclass
from typing import Any

import ngsolve as ng
import numpy as np

RADIUS = 0.9
"""Spectral radius at infinite frequency: the only damping there is. At a twentieth of the period of
a step, the second bending mode of these films, it amounts to a damping ratio of about 1e-4."""

KEEP = 0.3
"""Ratio of two corrections above which the matrix is made anew."""

TOLERANCE = 1e-9
"""Largest correction of a degree of freedom that ends a step [m]."""

MOST = 40
"""Corrections of one step before it counts as failed."""

GRAVITY = (0.0, -9.81, 0.0)

SAG_PARTS = 20
"""Shares in which the weight is put on a body that is to hang in balance."""


@dataclass(frozen=True)
class Rubber:
    """youngs_modulus [Pa], poisson_ratio, density [kg/m^3]."""

    youngs_modulus: float
    poisson_ratio: float
    density: float

    @property
    def lame(self) -> tuple[float, float]:
        """lambda, mu [Pa]."""
        E, nu = self.youngs_modulus, self.poisson_ratio
        return E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))


@dataclass(frozen=True)
class Jerk:
    """A clamp that moves by `way` [m] between `begin` and `begin + time` [s]:

    way (10 s^3 - 15 s^4 + 6 s^5), s the share of the time; its acceleration is continuous.
    """

    way: tuple[float, float, float]
    begin: float
    time: float

    def _share(self, t: float) -> float:
        return float(np.clip((t - self.begin) / self.time, 0.0, 1.0))

    def __call__(self, t: float) -> np.ndarray:
        """Where it is at time t, (3,) [m]."""
        s = self._share(t)
        return np.asarray(self.way) * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)

    def acceleration(self, t: float) -> np.ndarray:
        """(3,) [m/s^2]."""
        s = self._share(t)
        return np.asarray(self.way) * (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / self.time**2


@dataclass(frozen=True)
class ForeignMotion:
    """Displacements at times (frames,) [s] from 0 on: coefficients (frames, dofs) of a field."""

    times: np.ndarray
    coefficients: np.ndarray
    field: Any
    matrices: int
    corrections: int

    @property
    def mesh(self) -> ng.Mesh:
        """The mesh at rest."""
        return self.field.space.mesh

    def at(self, frame: int) -> Any:
        """The displacement field [m] of one frame; the same object for each."""
        self.field.vec.FV().NumPy()[:] = self.coefficients[frame]
        return self.field

    def of(self, points: np.ndarray) -> np.ndarray:
        """Displacements (frames, points, 3) [m] of material points (points, 3)."""
        places = [self.mesh(*p) for p in points]
        return np.array([[self.at(k)(place) for place in places] for k in range(len(self.times))])


class FallingBody:
    """Forms, mass and matrices of one body; `release` computes its motion."""

    def __init__(self, mesh: ng.Mesh, rubber: Rubber, *, order: int):
        lam, mu = rubber.lame
        self._space = ng.VectorH1(mesh, order=order, dirichlet="clamp")
        u, v = self._space.TnT()
        F = ng.Id(3) + ng.Grad(u)
        log_J = ng.log(ng.Det(F))
        psi = mu / 2 * (ng.InnerProduct(F, F) - 3) - mu * log_J + lam / 2 * log_J**2
        self._elastic = ng.BilinearForm(self._space, symmetric=True)
        self._elastic += ng.Variation(psi.Compile() * ng.dx)
        mass = ng.BilinearForm(self._space, symmetric=True)
        mass += rubber.density * u * v * ng.dx
        self._mass = mass.Assemble().mat
        weight = ng.LinearForm(rubber.density * ng.CF(GRAVITY) * v * ng.dx)
        self._weight = weight.Assemble().vec
        self._gravity = self._weight.CreateVector()
        self._gravity.data = self._weight
        self._free = np.array(self._space.FreeDofs(), bool)
        self._inverse: Any = None
        self._matrices = self._corrections = 0

    @property
    def dofs(self) -> int:
        """Degrees of freedom."""
        return self._space.ndof

    def jerked(self, frames: int, frame_step: float, steps: int, jerk: Jerk) -> ForeignMotion:
        """From the balance under its weight, its clamp then moved as `jerk` says.

        Seen from the clamp nothing is held elsewhere, and the weight is M (g - jerk'').
        """
        field = ng.GridFunction(self._space)
        u, v, a, none = (field.vec.CreateVector() for _ in range(4))
        for z in (u, v, a, none):
            z[:] = 0.0
        for share in np.linspace(1.0 / SAG_PARTS, 1.0, SAG_PARTS):
            self._weight.data = float(share) * self._gravity
            self._inverse = None
            self._balance(u, none, a, 0.0, 0.0)
        whole = ng.GridFunction(self._space)
        kept, field_of = [u.FV().NumPy().copy()], ng.GridFunction(self._space)
        self._inverse = None
        dt, af = frame_step / steps, RADIUS / (RADIUS + 1)
        for k in range(frames * steps):
            pull = np.asarray(GRAVITY) - jerk.acceleration(dt * (k + 1.0 - af))
            field_of.Set(ng.CF(tuple(pull.tolist())))
            self._weight.data = self._mass * field_of.vec
            self._step(u, v, a, dt)
            if (k + 1) % steps == 0:
                whole.Set(ng.CF(tuple(jerk(dt * (k + 1)).tolist())))
                kept.append(u.FV().NumPy() + whole.vec.FV().NumPy())
        times = frame_step * np.arange(frames + 1)
        return ForeignMotion(times, np.array(kept), field, self._matrices, self._corrections)

    def release(self, frames: int, frame_step: float, steps: int) -> ForeignMotion:
        """From rest at time 0; `steps` time steps for each of `frames` frames [s]."""
        field = ng.GridFunction(self._space)
        u, v, a = (field.vec.CreateVector() for _ in range(3))
        for z in (u, v, a):
            z[:] = 0.0
        a.data = self._mass.Inverse(self._space.FreeDofs(), "sparsecholesky") * self._weight
        kept = [u.FV().NumPy().copy()]
        self._inverse = None
        for _ in range(frames):
            for _ in range(steps):
                self._step(u, v, a, frame_step / steps)
            kept.append(u.FV().NumPy().copy())
        times = frame_step * np.arange(frames + 1)
        return ForeignMotion(times, np.array(kept), field, self._matrices, self._corrections)

    def _step(self, u: Any, v: Any, a: Any, dt: float) -> None:
        """Advance displacement, velocity and acceleration in place."""
        r = RADIUS
        am, af = (2 * r - 1) / (r + 1), r / (r + 1)
        gamma, beta = 0.5 - am + af, (1 - am + af) ** 2 / 4
        stiff = (1 - am) / ((1 - af) * beta * dt**2)
        predicted, w, old = (u.CreateVector() for _ in range(3))
        predicted.data = u + dt * v + dt**2 * (0.5 - beta) * a
        # M (stiff (w - w of the prediction) + am a) is the inertia of the balance
        old.data = (1 - af) * predicted + af * u
        w.data = u + (1 - af) * (dt * v + 0.5 * dt**2 * a)  # as if the acceleration stayed
        self._balance(w, old, a, stiff, am)
        old.data = (1 / (1 - af)) * w - (af / (1 - af)) * u  # u'
        new = u.CreateVector()
        new.data = (1 / (beta * dt**2)) * (old - predicted)  # a'
        v.data = v + dt * ((1 - gamma) * a + gamma * new)
        u.data = old
        a.data = new

    def _balance(self, w: Any, old: Any, a: Any, stiff: float, am: float) -> None:
        """Newton's method for w."""
        force, inertia, change = (w.CreateVector() for _ in range(3))
        before, fresh = np.inf, False
        for _ in range(MOST):
            if self._inverse is None:
                self._factorise(w, stiff)
                before, fresh = np.inf, True
            self._elastic.Apply(w, force)
            inertia.data = stiff * (w - old) + am * a
            force.data += self._mass * inertia - self._weight
            change.data = self._inverse * force
            size = float(np.abs(change.FV().NumPy()).max())
            if not np.isfinite(size):
                raise RuntimeError("A tetrahedron turned inside out: take shorter steps.")
            w.data -= change
            self._corrections += 1
            if size < TOLERANCE:
                return
            if size > KEEP * before and not fresh:
                self._inverse = None  # too old a matrix
            before, fresh = size, False
        raise RuntimeError(f"Newton's method needs more than {MOST} corrections in a step.")

    def _factorise(self, w: Any, stiff: float) -> None:
        self._elastic.AssembleLinearization(w)
        matrix = self._elastic.mat
        matrix.AsVector().data += stiff * self._mass.AsVector()
        self._inverse = matrix.Inverse(self._space.FreeDofs(), "sparsecholesky")
        self._matrices += 1
