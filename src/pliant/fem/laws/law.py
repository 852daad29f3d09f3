"""A material law: an energy per rest volume, psi(F; parameters) [Pa]; everything else follows.

`@energy` turns a Python function of F and p into an `Energy`; calling the energy with numbers makes
a `Law` that a scene takes:

    @pl.energy
    def spongy(F, p):
        J = pl.laws.det(F)
        return p.mu / 2 * (pl.laws.first_invariant(F) - 3 - 2 * np.log(J)) + p.k / 2 * (J - 1) ** 2

    scene = pl.Scene(body, law=spongy(mu=1e3, k=5e3))

The function is called once with expressions to record it (fem.laws.expression); stress and tangent
are derived from the record and compiled into the same kernels for every law.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from pliant.complexstep.derivatives import hessian
from pliant.core.errors import BadInput
from pliant.fem.laws.expression import Expression, constant, gradient, maximum, variable
from pliant.fem.laws.invariants import InvariantRecord, NeedsStretches

Function = Callable[[Any, Any], Any]

DEFAULT_FLOOR = 0.3
"""Stretch below which an invertible law continues as a parabola: small enough not to be met in an
ordinary compression, large enough that log J and J^(-2/3) stay mild (Stomakhin et al. 2012). A body
whose nodes start at random wants 0.8: at 0.3 all its cells turn the right way round, but so stiff
that it can stop at rest while it overlaps itself (energy 1.5 J where 0 is the rest, in
tests/dynamics/test_newton.py's cube)."""


class _Recorder:
    """p while an energy is recorded: every attribute is a parameter."""

    def __init__(self, known: tuple[str, ...]):
        self._names: list[str] = list(known)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._names:
            self._names.append(name)
        return variable(f"p_{name}")


@dataclass(frozen=True, eq=False)
class Energy:
    """An energy without numbers.

    parameters: names, in the order of the kernels' table; units: of each, for tables; lame: small-
    strain (lambda, mu) of a parameter record, in closed form (derived by multicomplex steps where
    absent); stresses: closed-form d psi / d stretch_i of three stretches, for checks and curves;
    starts: parameters with a given Young's modulus and Poisson's ratio at small strain.
    """

    name: str
    function: Function
    parameters: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    lame: Callable[[Any], tuple[Any, Any]] | None = None
    stresses: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]] | None = None
    starts: Callable[[float, float], dict[str, float]] | None = None
    stress_code: str | None = None

    def __call__(self, *, invertible: float | bool = False, **values: Any) -> "Law":
        """The law with these parameters: numbers, or arrays with one for every cell."""
        self.require_parameters(values)
        for n, v in values.items():
            if not np.isfinite(np.asarray(v, float)).all():
                raise BadInput(f"{self.name}: {n} must be finite, not {v}.")
        floor = DEFAULT_FLOOR if invertible is True else float(invertible or 0.0)
        if not 0.0 <= floor < 1.0:
            raise BadInput(f"invertible must be a stretch between 0 and 1, not {invertible}.")
        return Law(self, {n: values[n] for n in self.parameters}, floor)

    def require_parameters(self, values: Collection[str]) -> None:
        """Refuse names that are not exactly those of the parameters."""
        missing = [n for n in self.parameters if n not in values]
        extra = [n for n in values if n not in self.parameters]
        if missing or extra:
            wrong = f"has no parameter '{extra[0]}'" if extra else f"needs '{missing[0]}'"
            raise BadInput(
                f"The law '{self.name}' {wrong}; its parameters are {', '.join(self.parameters)}."
            )

    def from_moduli(
        self, youngs_modulus: Any, poisson_ratio: Any, *, invertible: float | bool = False
    ) -> "Law":
        """The law that has this Young's modulus and Poisson's ratio at small strain."""
        if self.starts is None:
            raise BadInput(
                f"The law '{self.name}' does not follow from a modulus and a ratio alone: "
                f"give its parameters {', '.join(self.parameters)}."
            )
        return self(invertible=invertible, **self.starts(youngs_modulus, poisson_ratio))

    def value(self, F: Any, parameters: Any) -> Any:
        """psi for a 3x3 array of numbers of any kind and a record with the parameters."""
        return self.function(np.asarray(F, object), parameters)

    def _inputs(self) -> SimpleNamespace:
        return SimpleNamespace(**{n: variable(f"p_{n}") for n in self.parameters})

    @cached_property
    def principal(self) -> Expression:
        """psi as an expression of three stretches s0, s1, s2 and the parameters p_*."""
        F = np.full((3, 3), constant(0.0), object)
        for i in range(3):
            F[i, i] = variable(f"s{i}")
        return _checked(self.function(F, self._inputs()), self.name)

    def continued(self, floor: float) -> Expression:
        """`principal`, continued below the stretch `floor` if that is positive."""
        return invertible_energy(self.principal, floor) if floor > 0.0 else self.principal

    @cached_property
    def full(self) -> Expression | None:
        """psi as an expression of F00 ... F22; None for energies of the stretches."""
        F = np.empty((3, 3), object)
        for i in range(3):
            for j in range(3):
                F[i, j] = variable(f"F{i}{j}")
        try:
            return _checked(self.function(F, self._inputs()), self.name)
        except NeedsStretches:
            return None

    @cached_property
    def invariant(self) -> Expression | None:
        """psi as an expression of i0 = I1, i1 = I2, i2 = J; None where it is written otherwise."""
        F = InvariantRecord(*(variable(f"i{k}") for k in range(3)))
        try:
            return _checked(self.function(F, self._inputs()), self.name)
        except (NeedsStretches, AttributeError, TypeError):
            return None

    @cached_property
    def isotropic(self) -> bool:
        """Whether psi(Q F R) = psi(F) for rotations Q, R: tried on fixed F close to the rest."""
        if self.full is None:
            return True
        rng = np.random.default_rng(7)
        p = SimpleNamespace(**{n: 0.6 + 0.1 * k for k, n in enumerate(self.parameters)})
        for _ in range(3):
            F = np.eye(3) + 0.1 * rng.standard_normal((3, 3))
            Q, R = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
            Q, R = (M * np.sign(np.linalg.det(M)) for M in (Q, R))
            here, there = (float(self.value(G, p)) for G in (F, Q @ F @ R))
            if not abs(here - there) <= 1e-9 * max(abs(here), 1e-3):
                return False
        return True


def _checked(value: Any, name: str) -> Expression:
    if not isinstance(value, Expression):
        raise BadInput(
            f"The energy '{name}' returned {type(value).__name__} instead of a number made from "
            "F and p: use +, -, *, /, ** and NumPy's elementary functions."
        )
    return value


def invertible_energy(psi: Expression, floor: float) -> Expression:
    """psi of the stretches, continued as a parabola where a stretch is below `floor`.

    With c = max(s, floor): psi(c) + sum_i psi_i(c) (s_i - c_i) + k/2 (s_i - c_i)^2, where k is the
    trace of psi's Hessian at the rest. The force is continuous and pushes back from any inversion.
    """
    s = [variable(f"s{i}") for i in range(3)]
    c = [maximum(x, constant(floor)) for x in s]
    g = gradient(psi, s)
    stiff = [gradient(g[i], s)[i] for i in range(3)]
    rest = {f"s{i}": constant(1.0) for i in range(3)}
    k = sum(substitute(h, rest) for h in stiff)
    clamped = {f"s{i}": c[i] for i in range(3)}
    out = substitute(psi, clamped)
    for i in range(3):
        d = s[i] - c[i]
        out = out + substitute(g[i], clamped) * d + 0.5 * k * d * d
    return out


def substitute(root: Expression, by: dict[str, Expression]) -> Expression:
    """root with variables replaced."""
    from pliant.fem.laws.expression import add, divide, multiply, neg, power, topological, unary

    new: dict[int, Expression] = {}
    for n in topological([root]):
        a = [new[id(x)] for x in n.args]
        if n.op == "const":
            v = n
        elif n.op == "var":
            v = by.get(n.value, n)
        elif n.op == "add":
            v = add(*a)
        elif n.op == "sub":
            v = add(a[0], neg(a[1]))
        elif n.op == "mul":
            v = multiply(*a)
        elif n.op == "div":
            v = divide(*a)
        elif n.op == "neg":
            v = neg(a[0])
        elif n.op == "pow":
            v = power(a[0], n.value)
        elif n.op == "max":
            v = maximum(*a)
        else:
            v = unary(n.op, a[0])
        new[id(n)] = v
    return new[id(root)]


@dataclass(frozen=True, eq=False)
class Law:
    """An energy with its parameters: numbers, or arrays with one for every cell.

    floor: stretch below which the energy is continued so that inverted cells recover; 0: not.
    """

    energy: Energy
    values: dict[str, Any]
    floor: float = 0.0

    @property
    def name(self) -> str:
        """Name of the energy."""
        return self.energy.name

    def __repr__(self) -> str:
        numbers = ", ".join(
            f"{n}={v:.6g}" if np.ndim(v) == 0 else f"{n}=[{np.size(v)} values]"
            for n, v in self.values.items()
        )
        return f"{self.name}({numbers}{', invertible' if self.floor else ''})"

    def replace(self, **values: Any) -> "Law":
        """The same law with some parameters changed."""
        return self.energy(invertible=self.floor, **{**self.values, **values})

    def table(self, cell_count: int) -> np.ndarray:
        """Parameters of every cell, (cells, parameters)."""
        out = np.empty((cell_count, len(self.values)))
        for j, (n, v) in enumerate(self.values.items()):
            v = np.asarray(v, float)
            if v.ndim and v.shape != (cell_count,):
                raise BadInput(
                    f"{self.name}: {n} has shape {v.shape}; it must be one number or one for each "
                    f"of the {cell_count} cells."
                )
            out[:, j] = v
        return out

    def record(self) -> SimpleNamespace:
        """Parameters as attributes."""
        return SimpleNamespace(**{n: np.asarray(v, float) for n, v in self.values.items()})

    def lame(self) -> tuple[Any, Any]:
        """Small-strain lambda and mu [Pa], in closed form or by `derived_lame`."""
        if self.energy.lame is None:
            return self.derived_lame()
        return self.energy.lame(self.record())

    def derived_lame(self) -> tuple[Any, Any]:
        """lambda = psi_12, mu = (psi_11 - psi_12) / 2 at the rest, by multicomplex steps."""
        p = self.record()

        def psi(a, b):
            F = np.zeros((3, 3), object)
            for i, x in enumerate((a, b, a * 0.0 + 1.0)):
                F[i, i] = x
            return self.energy.value(F, p)

        one = np.ones(np.broadcast(*(np.asarray(v) for v in self.values.values()), 0.0).shape)
        H = hessian(psi, [one, one])
        return H[0, 1], 0.5 * (H[0, 0] - H[0, 1])

    @property
    def youngs_modulus(self) -> Any:
        """E = mu (3 lambda + 2 mu) / (lambda + mu) at small strain [Pa]."""
        lam, mu = self.lame()
        return mu * (3.0 * lam + 2.0 * mu) / (lam + mu)

    @property
    def poisson_ratio(self) -> Any:
        """nu = lambda / (2 (lambda + mu)) at small strain."""
        lam, mu = self.lame()
        return lam / (2.0 * (lam + mu))


def energy(
    function: Function | None = None, *, name: str | None = None, **closed_forms: Any
) -> Any:
    """Decorator: an energy from a function of F (3x3) and p (one attribute per parameter)."""

    def make(f: Function) -> Energy:
        title = name or getattr(f, "__name__", "energy").replace("_", "-")
        recorder = _Recorder(tuple(closed_forms.get("units", {})))
        F = np.full((3, 3), constant(0.0), object)
        for i in range(3):
            F[i, i] = variable(f"s{i}")
        _checked(f(F, recorder), title)
        return Energy(title, f, tuple(recorder._names), **closed_forms)

    return make if function is None else make(function)


def lame_of(youngs_modulus: Any, poisson_ratio: Any) -> tuple[Any, Any]:
    """lambda and mu of E and nu."""
    E, nu = youngs_modulus, poisson_ratio
    return E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), E / (2.0 * (1.0 + nu))


def bulk_and_shear(youngs_modulus: Any, poisson_ratio: Any) -> tuple[Any, Any]:
    """K = E / (3 (1 - 2 nu)) and mu."""
    E, nu = youngs_modulus, poisson_ratio
    return E / (3.0 * (1.0 - 2.0 * nu)), E / (2.0 * (1.0 + nu))
