"""Tangents and adjoints of a reduced body's steps, by its state and its numbers.

With A = dg/dx at the step's end, friction's growth with the pressure included,

    A dx = - (dg/dpast . dpast + dg/dp . dp),      A^T y = x_bar,

after which everything is products with matrices of the numbers' size. The span, its points and
what its walls resist stay as they are (reduced.reduction). What a backward run gathers for the
masses of the nodes and the moduli of the cells is spread over the body once, at its end.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from pliant.core.errors import BadInput
from pliant.dynamics.model import Parameters, State
from pliant.reduced.span_loads import weights_of

if TYPE_CHECKING:
    from pliant.reduced.reduced_model import ReducedModel, Taken

KNOWN = {
    "lam", "mu", "law", "mass", "mass_damping", "stiffness_damping", "gravity", "velocity",
    "normal", "offset", "contact_stiffness",
}  # fmt: skip
"""Blocks of parameters that a reduced body depends on smoothly."""

Past = tuple[np.ndarray, np.ndarray, np.ndarray]


class ReducedDerivatives:
    """The Derivatives of a reduced model."""

    def __init__(self, model: "ReducedModel"):
        self.model = model
        self._heavy: dict[int, tuple[Parameters, np.ndarray, np.ndarray]] = {}
        self.begin_adjoint()

    # forward -------------------------------------------------------------------------------------

    def initial_tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """See Derivatives."""
        from pliant.reduced.reduced_model import numbers_of_state, reduced_state

        m = self.model
        q, rate, second = numbers_of_state(state)
        taken, none, out = m.start(q, rate, state.t), np.zeros(m.size), []
        for p in directions:
            _require_known(p, m.scene.model)
            dM, _ = self._masses(p)
            moved = -dM @ rate
            if "velocity" in p:
                moved = moved + m.mass.momentum(np.asarray(p["velocity"]))
            if "mass" in p:
                moved = moved + m.mass.momentum_change(p["mass"], m.asked_velocity())
            d_rate = np.linalg.solve(m.mass.matrix, moved)
            change = self._by_past(taken, (none, d_rate, none)) + self._by_parameters(taken, p)
            d_second = np.linalg.solve(m.mass.matrix, -change - dM @ second)
            out.append(reduced_state(none, d_rate, d_second, state.t))
        return out

    def tangents(
        self,
        before: State,
        after: State,
        changes: Sequence[State],
        directions: Sequence[Parameters],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """See Derivatives; solves are direct, so there is no tolerance."""
        from pliant.reduced.reduced_model import numbers_of_state, reduced_state

        if not directions:
            return []
        taken = self.model.between(before, after)
        factor, scheme, out = self._factor(taken), self.model.scene.integrator, []
        for change, p in zip(changes, directions, strict=True):
            past = numbers_of_state(change)
            dx = -lu_solve(factor, self._by_past(taken, past) + self._by_parameters(taken, p))
            four = (dx, *past)
            rows = (scheme.next_u, scheme.next_v, scheme.next_a)
            u, v, a = (weights_of(four, row) for row in rows)
            out.append(reduced_state(u, v, a, after.t))
        return out

    def _factor(self, taken: "Taken"):
        m, b = self.model, taken.balance
        A = m.jacobian(taken)
        if m.touch is not None:
            J = m.touch.jacobians(m.touching(taken), b.force)
            A = A - m.touch.matrix()
            A = A - b.per_x("next_u") * J["next_u"] - b.per_x("next_v") * J["next_v"]
        return lu_factor(A, check_finite=False)

    def _by_past(self, taken: "Taken", past: Past) -> np.ndarray:
        """dg/dpast . dpast while x stays."""
        m, b = self.model, taken.balance
        still = np.zeros(m.size)

        def d(name: str) -> np.ndarray:
            return weights_of((still, *past), b.rows[name])

        out = m.mass.matrix @ d("moved")
        out += b.force[0] * (m.forces.stiffness(taken["next_u"]) @ d("next_u"))
        if b.force[1] != 0.0:
            out += b.force[1] * (m.forces.stiffness(taken.past[0]) @ past[0])
        beta = b.stiffness_damping
        if beta > 0.0:
            at, rate = taken["predicted"], taken["rate"]
            out += beta * m.forces.viscous_force(at, d("rate"))
            out += beta * m.forces.viscous_by_place(at, rate, d("predicted"))
        if m.walls is not None:
            out += m.walls @ d("strained")
        if m.touch is not None:
            J = m.touch.jacobians(m.touching(taken), b.force)
            for name in ("u", "v", "next_u", "next_v"):
                out -= J[name] @ d(name)
        return out

    def _by_parameters(self, taken: "Taken", p: Parameters) -> np.ndarray:
        """dg/dp . dp."""
        m, b = self.model, taken.balance
        _require_known(p, m.scene.model)
        out, beta = np.zeros(m.size), b.stiffness_damping
        at, rate = taken["predicted"], taken["rate"]
        if "mass_damping" in p:
            out += float(p["mass_damping"]) * (m.mass.matrix @ rate)
        if "stiffness_damping" in p:
            own = m.forces.viscous_force(at, rate)
            if m.walls is not None:
                own = own + m.walls @ rate
            out += float(p["stiffness_damping"]) * own
        if "mass" in p:
            dM, weight = self._masses(p)
            out += dM @ taken["moved"] - b.force_total * weight
        if "gravity" in p:
            gravity = np.asarray(p["gravity"], float)[: m.span.dim]
            out -= b.force_total * (m.mass.pull_of_unit @ gravity)
        d_p = self._law_change(p)
        if d_p is not None:
            for factor, q in zip(b.force, (taken["next_u"], taken.past[0]), strict=True):
                if factor != 0.0:
                    out += factor * m.forces.force_by_law(q, d_p)
        if beta > 0.0 and ("lam" in p or "mu" in p):
            lam, mu = (_per_cell(p, name, len(m.lam)) for name in ("lam", "mu"))
            out += beta * m.forces.viscous_by_moduli(at, rate, lam, mu)
        touched = {"normal", "offset", "contact_stiffness"} & set(p)
        if m.touch is not None and touched:
            out -= m.touch.by_parameter(
                m.touching(taken), b.force, normal=p.get("normal"), offset=p.get("offset"),
                stiffness=float(p.get("contact_stiffness", 0.0)),
            )  # fmt: skip
        return out

    def _masses(self, p: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Changes of the mass matrix and of the weight along p; the same at every step of a run."""
        m = self.model
        if "mass" not in p:
            return np.zeros((m.size, m.size)), np.zeros(m.size)
        kept = self._heavy.get(id(p))
        if kept is None or kept[0] is not p:
            mass = np.asarray(p["mass"], float)
            weight = m.mass.pulled(mass) @ m.gravity[: m.span.dim]
            self._heavy[id(p)] = kept = (p, m.mass.change(mass), weight)
        return kept[1], kept[2]

    def _law_change(self, p: Parameters) -> np.ndarray | None:
        """Change of the law's parameters, (cells, parameters)."""
        m = self.model
        if "law" in p or m.by_moduli is None:
            return p.get("law")
        if "lam" not in p and "mu" not in p:
            return None
        lam, mu = (_per_cell(p, name, len(m.lam))[:, None] for name in ("lam", "mu"))
        return lam * m.by_moduli[0] + mu * m.by_moduli[1]

    # backward ------------------------------------------------------------------------------------

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """See Derivatives; what is gathered starts at zero."""
        m = self.model
        points, numbers = len(m.forces.points), len(m.law.values)
        self._products = np.zeros((m.size, m.size))
        self._pulled = np.zeros(m.size)
        self._by_law = np.zeros((points, numbers))
        self._by_lam, self._by_mu = np.zeros(points), np.zeros(points)
        self._waiting: tuple[np.ndarray, np.ndarray] | None = None

    def adjoint(self, before: State, after: State, bar: State, dual: Parameters) -> State:
        """See Derivatives."""
        from pliant.reduced.reduced_model import numbers_of_state, reduced_state

        taken = self.model.between(before, after)
        scheme = self.model.scene.integrator
        rows = (scheme.next_u, scheme.next_v, scheme.next_a)
        ends = numbers_of_state(bar)
        x_bar = weights_of(ends, [row[0] for row in rows])
        y = lu_solve(self._factor(taken), x_bar, trans=1)
        past = self._past_pull(taken, -y)
        self._parameters_pull(taken, -y, dual)
        u, v, a = (
            weights_of(ends, [row[z + 1] for row in rows]) + past[z] for z in range(3)
        )  # fmt: skip
        return reduced_state(u, v, a, before.t)

    def initial_adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """See Derivatives; spreads what was gathered."""
        from pliant.reduced.reduced_model import numbers_of_state

        m = self.model
        q, rate, second = numbers_of_state(state)
        _, rate_bar, second_bar = numbers_of_state(bar)
        taken = m.start(q, rate, state.t)
        y = np.linalg.solve(m.mass.matrix, second_bar)
        rate_bar = rate_bar + self._past_pull(taken, -y)[1]
        self._parameters_pull(taken, -y, dual)
        self._products -= np.outer(y, second)
        self._pull_what_waits()
        z = np.linalg.solve(m.mass.matrix, rate_bar)
        self._products -= np.outer(z, rate)
        velocity = np.zeros((len(m.masses), 3))
        velocity[:, : m.span.dim] = m.mass.nodal_momentum(z)
        dual.add("velocity", velocity)
        by_mass = m.mass.pull(self._products) + m.mass.gravity_pull(self._pulled, m.gravity)
        dual.add("mass", by_mass + m.mass.field_pull(z, m.asked_velocity()))
        cells, count = m.forces.points.cells, len(m.lam)
        law = np.stack([np.bincount(cells, by, count) for by in self._by_law.T], axis=1)
        dual.add("law", law)
        if m.by_moduli is not None:
            for name, slope in zip(("lam", "mu"), m.by_moduli, strict=True):
                dual.add(name, np.sum(law * slope, axis=1))
        dual.add("lam", np.bincount(cells, self._by_lam, count))
        dual.add("mu", np.bincount(cells, self._by_mu, count))
        self.begin_adjoint()

    def _past_pull(self, taken: "Taken", y: np.ndarray) -> list[np.ndarray]:
        """Transpose of `_by_past`: duals of (q, q', q'')."""
        m, b = self.model, taken.balance
        bars = {"moved": m.mass.matrix @ y}
        bars["next_u"] = b.force[0] * (m.forces.stiffness(taken["next_u"]) @ y)
        bars["u"] = np.zeros(m.size)
        if b.force[1] != 0.0:
            bars["u"] += b.force[1] * (m.forces.stiffness(taken.past[0]) @ y)
        beta = b.stiffness_damping
        if beta > 0.0:
            at, rate = taken["predicted"], taken["rate"]
            bars["rate"] = beta * m.forces.viscous_force(at, y)
            bars["predicted"] = beta * m.forces.viscous_place_pull(at, rate, y)
        if m.walls is not None:
            bars["strained"] = m.walls @ y
        if m.touch is not None:
            J = m.touch.jacobians(m.touching(taken), b.force)
            for name in ("u", "v", "next_u", "next_v"):
                bars[name] = bars.get(name, 0.0) - J[name].T @ y
        out = [np.zeros(m.size) for _ in range(3)]
        for name, bar in bars.items():
            for z in range(3):
                weight = float(b.rows[name][z + 1])
                if weight != 0.0:
                    out[z] += weight * bar
        return out

    def _parameters_pull(self, taken: "Taken", y: np.ndarray, dual: Parameters) -> None:
        """Transpose of `_by_parameters`."""
        m, b = self.model, taken.balance
        at, rate = taken["predicted"], taken["rate"]
        dual.add("mass_damping", float(y @ (m.mass.matrix @ rate)))
        viscous = float(y @ m.forces.viscous_force(at, rate))
        if m.walls is not None:
            viscous += float(y @ (m.walls @ rate))
        dual.add("stiffness_damping", viscous)
        self._products += np.outer(y, taken["moved"])
        self._pulled -= b.force_total * y
        gravity = np.zeros(3)
        gravity[: m.span.dim] = -b.force_total * (y @ m.mass.pull_of_unit)
        dual.add("gravity", gravity)
        self._pull_law(taken["next_u"], b.force[0] * y, taken.past[0], b.force[1] * y)
        if b.stiffness_damping > 0.0:
            lam, mu = m.forces.viscous_moduli_pull(at, rate, y)
            self._by_lam += b.stiffness_damping * lam
            self._by_mu += b.stiffness_damping * mu
        if m.touch is not None:
            found = m.touch.parameters_pull(m.touching(taken), b.force, y)
            for name, value in found.items():
                dual.add(name, -value)

    def _pull_law(
        self, end: np.ndarray, at_end: np.ndarray, start: np.ndarray, at_start: np.ndarray
    ) -> None:
        """By the law's parameters; what is at a step's start waits for the step that ends there."""
        if self._waiting is not None:
            q, y = self._waiting
            if np.array_equal(q, end):
                at_end = at_end + y
            else:
                self._by_law += self.model.forces.law_pull(q, y)
        if np.any(at_end):
            self._by_law += self.model.forces.law_pull(end, at_end)
        self._waiting = (start, at_start) if np.any(at_start) else None

    def _pull_what_waits(self) -> None:
        if self._waiting is not None:
            self._by_law += self.model.forces.law_pull(*self._waiting)
        self._waiting = None


def _require_known(p: Parameters, model: str) -> None:
    for name, value in p.items():
        if name not in KNOWN and np.any(value):
            raise BadInput(
                f"model = '{model}': '{name}' cannot be unknown here; use model = 'corotated'."
            )


def _per_cell(p: Parameters, name: str, count: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(p.get(name, 0.0), float), (count,))
