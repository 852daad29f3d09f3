"""Elastic forces of the cells, with the ghost penalty of their cuts and stiffness damping.

Two kinds. An energy (corotated, or a material law) has

    f_new f_int(u') + f_old f_int(u) + beta D(u~) (rate),

nonlinear in x. A frozen stiffness (linear, or with the frames of the predicted displacement) has
F_R(strained, f_new + f_old) of fem.forces.elasticity, which is linear in x: a step is one linear
solve. Ghost penalty and masses are assembled and applied with the cells, in the same pass.
"""

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.model import Parameters
from pliant.dynamics.terms.stage import Changes, Pulls, Stage, mix
from pliant.dynamics.terms.term import Term
from pliant.fem.forces.corotation import Corotation
from pliant.fem.forces.elasticity import Elasticity, ghost_energy
from pliant.fem.forces.hyperelastic import Hyperelasticity
from pliant.fem.forces.mass import MassMatrix
from pliant.fem.laws.law import Law
from pliant.linalg.blocks import combine


class Elastic(Term):
    """What the two kinds share.

    linear: whether the force is linear in x. clamped: whether the tangent without its negative
    parts, which is cheaper, makes Newton's method converge as quickly.
    """

    linear: bool
    clamped: bool
    operator: Corotation | Hyperelasticity | Elasticity
    rest: Elasticity
    """The linear operator about the rest shape; modes and stable steps take it."""

    def begin(self, stage: Stage, matrix, mass: MassMatrix, *, project: bool) -> None:
        """matrix := the tangent of the cells and of the masses."""
        raise TypeError(type(self).__name__)

    def begin_with_force(self, stage: Stage, matrix, mass: MassMatrix, out: wp.array) -> None:
        """`begin`, and out += the whole force; the stage is at x = 0."""
        self.begin(stage, matrix, mass, project=False)
        self.add_constant(stage, out)
        self.add_force(stage, out)

    def add_damping(self, stage: Stage, out: wp.array, factor: float) -> None:
        """out += factor * the force of the rate, per stiffness damping."""
        raise TypeError(type(self).__name__)

    def add_elastic(self, stage: Stage, out: wp.array) -> None:
        """out += the elastic force alone as the step balances it, f_new f' + f_old f."""
        raise TypeError(type(self).__name__)

    def stretches(self, u: wp.array) -> np.ndarray:
        """det F of the cells, (cells,)."""
        return self.rest.stretches(u)


class EnergyTerm(Elastic):
    """Forces of an energy: fem.forces.corotation or fem.forces.hyperelastic."""

    linear = False

    def __init__(self, operator: Corotation | Hyperelasticity, rest: Elasticity):
        self.operator: Corotation | Hyperelasticity = operator
        self.rest = rest
        self.clamped = operator.clamped_converges
        self._kept: tuple[wp.array, wp.array] | None = None
        self._kept_stretches: tuple[wp.array, np.ndarray] | None = None
        self.by_moduli: tuple[np.ndarray, np.ndarray] | None = None
        """d p / d (lambda, mu), (cells, parameters), where the law follows the moduli."""

    def set_law(self, law: Law, by_moduli: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Another law or other parameters."""
        self._kept = self._kept_stretches = None
        self.by_moduli = by_moduli
        self.operator.set_law(law)

    def force_at(self, u: wp.array) -> wp.array:
        """Force of the energy at u; a step that ended there has left it."""
        if self._kept is None or self._kept[0] is not u:
            force = zeros(len(u), wp.vec3d)
            self.operator.add_force(u, force)
            self._kept = (u, force)
        return self._kept[1]

    def keep_last(self, u: wp.array) -> None:
        """Remember the force at u, where the last residual was taken and which nobody changes."""
        self._kept = (u, self.operator.last_force(u))

    def add_constant(self, stage: Stage, out: wp.array) -> None:
        f_old = stage.balance.force[1]
        if f_old != 0.0:
            combine(out, (1.0, out), (-f_old, self.force_at(stage["u"])))

    def add_force(self, stage: Stage, out: wp.array) -> None:
        beta, u = stage.balance.stiffness_damping, stage["next_u"]
        at, rate = (stage["predicted"], stage["rate"]) if beta > 0.0 else (u, u)
        self.operator.add_forces(
            u, at, rate, out, factor=-stage.balance.force[0], viscous_factor=-beta
        )

    def begin(self, stage: Stage, matrix, mass: MassMatrix, *, project: bool) -> None:
        b, beta = stage.balance, stage.balance.stiffness_damping
        self.operator.assemble(
            matrix, mass, stage["next_u"],
            mass_factor=b.per_x("moved"),
            stiffness_factor=b.force[0] * b.per_x("next_u"),
            viscous_factor=beta * b.per_x("rate"),
            viscous_at=stage["predicted"] if beta > 0.0 else None, project=project,
        )  # fmt: skip

    def add_damping(self, stage: Stage, out: wp.array, factor: float) -> None:
        """Quicker at the stage where `add_force` was last."""
        self.operator.add_last_viscous(stage["predicted"], stage["rate"], out, factor=factor)

    def add_elastic(self, stage: Stage, out: wp.array) -> None:
        for factor, name in zip(stage.balance.force, ("next_u", "u"), strict=True):
            if factor != 0.0:
                self.operator.add_force(stage[name], out, factor=factor)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        o, beta = self.operator, stage.balance.stiffness_damping
        d_p = self._law_change(p)
        for factor, name in zip(stage.balance.force, ("next_u", "u"), strict=True):
            if factor != 0.0:
                o.add_force_change(stage[name], d[name], out, d_p=d_p, factor=-factor)
        lam, mu = (self._cells(p, name) for name in ("lam", "mu"))
        if beta > 0.0:
            o.add_viscous_change(
                stage["predicted"], d["predicted"], stage["rate"], d["rate"], lam, mu, out,
                factor=-beta,
            )  # fmt: skip
        if "stiffness_damping" in p:
            o.add_viscous(
                stage["predicted"], stage["rate"], out, factor=-float(p["stiffness_damping"])
            )
        if o.ghost is not None and "mu" in p:
            o.ghost.add_force_by_shear(self._ghosted(stage), mu, out, factor=-1.0)

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        o, beta = self.operator, stage.balance.stiffness_damping
        by: np.ndarray | float = 0.0
        for factor, name in zip(stage.balance.force, ("next_u", "u"), strict=True):
            if factor != 0.0:
                o.add_force_change(stage[name], y, pulls[name], factor=-factor)
                by = by + o.parameter_pull(stage[name], y, factor=-factor)
        dual.add("law", by)
        if self.by_moduli is not None:
            for name, slope in zip(("lam", "mu"), self.by_moduli, strict=True):
                dual.add(name, np.sum(by * slope, axis=1))
        viscous = zeros(len(y), wp.vec3d)
        o.add_viscous(stage["predicted"], stage["rate"], viscous)
        dual.add("stiffness_damping", -np.sum(y.numpy() * viscous.numpy()))
        if beta > 0.0:
            o.add_viscous(stage["predicted"], y, pulls["rate"], factor=-beta)
            by_lam, by_mu = o.viscous_pull(
                stage["predicted"], stage["rate"], y, factor=-beta, at_bar=pulls["predicted"]
            )
            dual.add("lam", by_lam)
            dual.add("mu", by_mu)
        if o.ghost is not None:
            by_mu = zeros(o.cell_count, wp.float64)
            o.ghost.add_shear_adjoint(self._ghosted(stage), mix((-1.0,), (y,)), by_mu)
            dual.add("mu", by_mu.numpy())

    def energy(self, u: wp.array, t: float) -> float:
        return self.operator.energy(u) + ghost_energy(self.operator.ghost, u)

    def stretches(self, u: wp.array) -> np.ndarray:
        kept = self._kept_stretches
        if kept is None or kept[0] is not u:
            own = self.operator if isinstance(self.operator, Corotation) else self.rest
            kept = self._kept_stretches = (u, own.stretches(u))
        return kept[1]

    def _law_change(self, p: Parameters) -> np.ndarray | None:
        """Change of the law's parameters, (cells, parameters)."""
        if "law" in p or self.by_moduli is None:
            return p.get("law")
        if "lam" not in p and "mu" not in p:
            return None
        none = np.zeros(self.operator.cell_count)
        lam, mu = (p.get(name, none)[:, None] for name in ("lam", "mu"))
        return lam * self.by_moduli[0] + mu * self.by_moduli[1]

    def _cells(self, p: Parameters, name: str) -> wp.array:
        count = self.operator.cell_count
        return to_device(np.broadcast_to(np.asarray(p.get(name, 0.0), float), (count,)), wp.float64)

    def _ghosted(self, stage: Stage) -> wp.array:
        """The field that the ghost penalty acts on."""
        weights = (*stage.balance.force, stage.balance.stiffness_damping)
        return mix(weights, (stage["next_u"], stage["u"], stage["rate"]))


class FrozenTerm(Elastic):
    """A stiffness whose frames, if it has any, are those of the predicted displacement."""

    linear = clamped = True

    def __init__(self, rest: Elasticity):
        self.operator: Elasticity = rest
        self.rest = rest

    def add_force(self, stage: Stage, out: wp.array) -> None:
        self.operator.rotate(stage["predicted"])
        self.operator.add_force(stage["strained"], stage.balance.force_total, out, factor=-1.0)

    def begin(self, stage: Stage, matrix, mass: MassMatrix, *, project: bool) -> None:
        self.operator.rotate(stage["predicted"])
        self.operator.assemble(matrix, mass, **_factors(stage))

    def begin_with_force(self, stage: Stage, matrix, mass: MassMatrix, out: wp.array) -> None:
        """The product with the matrix, while that is mirrored, costs a tenth of the cells' own."""
        if stage.balance.per_x("strained") == 0.0:
            return super().begin_with_force(stage, matrix, mass, out)
        self.operator.rotate(stage["predicted"])
        w = stage["strained"]
        return self.operator.assemble_and_add_force(
            matrix, mass, w, stage.balance.force_total, out, wp.empty_like(w), factor=-1.0,
            **_factors(stage),
        )  # fmt: skip

    def add_damping(self, stage: Stage, out: wp.array, factor: float) -> None:
        self.operator.rotate(stage["predicted"])
        self.operator.add_force(stage["rate"], 0.0, out, factor=factor)

    def add_elastic(self, stage: Stage, out: wp.array) -> None:
        b = stage.balance
        self.operator.rotate(stage["predicted"])
        w = mix((1.0, -b.stiffness_damping), (stage["strained"], stage["rate"]))
        self.operator.add_force(w, b.force_total, out)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        o, total = self.operator, stage.balance.force_total
        o.rotate(stage["predicted"])
        d_w = d["strained"]
        if "stiffness_damping" in p:
            d_w = mix((1.0, float(p["stiffness_damping"])), (d_w, stage["rate"]))
        o.add_force(d_w, 0.0, out, factor=-1.0)
        lam, mu = (_column(np.broadcast_to(p.get(n, 0.0), (o.cell_count,))) for n in ("lam", "mu"))
        n = len(out)
        o.add_force_tangents(
            stage["strained"], total, stage["predicted"], d["predicted"].reshape((n, 1)), lam, mu,
            out.reshape((n, 1)), factor=-1.0,
        )  # fmt: skip

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        o = self.operator
        o.rotate(stage["predicted"])
        lam, mu = (zeros(o.cell_count, wp.float64) for _ in range(2))
        o.add_force_adjoint(
            stage["strained"], stage.balance.force_total, stage["predicted"], mix((-1.0,), (y,)),
            lam, mu, pulls["predicted"],
        )  # fmt: skip
        dual.add("lam", lam.numpy())
        dual.add("mu", mu.numpy())
        w_bar = zeros(len(y), wp.vec3d)
        o.add_force(y, 0.0, w_bar, factor=-1.0)
        dual.add("stiffness_damping", np.sum(w_bar.numpy() * stage["rate"].numpy()))
        combine(pulls["strained"], (1.0, pulls["strained"]), (1.0, w_bar))

    def energy(self, u: wp.array, t: float) -> float:
        return self.operator.energy(u)


def _factors(stage: Stage) -> dict[str, float]:
    b = stage.balance
    return {"mass_factor": b.per_x("moved"), "stiffness_factor": b.per_x("strained")}


def _column(values: np.ndarray) -> wp.array:
    return to_device(np.ascontiguousarray(values, float)[:, None], wp.float64)
