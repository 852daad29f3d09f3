"""Viscoelastic branches: a generalised Maxwell (Prony) element beside the elastic term.

Every branch keeps, in the frames of the cells, the strain d_i that it has not yet let go of
(fem.forces.overstrain): d' = y' - d / t_i in time, y the cells' own strain. Linear in y within a
step of length h it is integrated exactly,

    d_i' = e_i d_i + c_i (y' - y),    e_i = exp(-h / t_i),   c_i = (1 - e_i) t_i / h,

so the stress at the end is K (C y' + p), C = sum E_i c_i and p = sum E_i e_i d_i - C y from the
past, K the cells' stiffness for a modulus of one: the tangent is a corotated one, however many
branches there are. The energy sum E_i d_i . K d_i / 2 is never negative, and in time it loses
sum E_i d_i . K d_i / t_i; over a step, sum E_i (d_i + d_i') . K (y' - y - d_i' + d_i) / 2, which is
no less than what was in the branches over any number of steps. Relaxed bodies have d = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.model import Parameters
from pliant.dynamics.terms.stage import Changes, Pulls, Stage
from pliant.dynamics.terms.term import Term
from pliant.fem.forces.elasticity import Elasticity
from pliant.fem.forces.overstrain import Overstrain
from pliant.fem.material import Branch
from pliant.linalg.blocks import combine, dot


@dataclass(frozen=True)
class _Step:
    """e and c of every branch for a step, and their derivatives by the branches' times."""

    e: np.ndarray
    c: np.ndarray
    e_slope: np.ndarray
    c_slope: np.ndarray


@dataclass(frozen=True)
class _Past:
    """Of a step's start: y, p, and sum E_i d_i with its force on the nodes, if that is balanced."""

    stage: Stage
    y: wp.array
    p: wp.array
    kept: wp.array
    force: wp.array | None


class BranchTerm(Term):
    """The branches of a body's material; rest: the operator that has its geometry."""

    def __init__(self, rest: Elasticity):
        self.operator = Overstrain(rest)
        self._past: _Past | None = None

    def set_material(self, branches: Sequence[Branch], lam: np.ndarray, mu: np.ndarray) -> None:
        """lam, mu: of the cells at small strain, for the ratio between them."""
        self.moduli = np.array([b.modulus for b in branches])
        self.times = np.array([b.time for b in branches])
        self._lam, self._mu = lam, mu
        E = _youngs_modulus(lam, mu)
        self.operator.set_material(lam / E, mu / E)
        self._past = None

    def relaxed(self) -> tuple[wp.array, ...]:
        """The strains of a body that has rested."""
        return tuple(zeros(self.operator.size, wp.vec3d) for _ in self.moduli)

    # forces --------------------------------------------------------------------------------------

    def add_force(self, stage: Stage, out: wp.array) -> None:
        (f_new, f_old), past = stage.balance.force, self._past_of(stage)
        share = float(self.moduli @ self._step(stage).c)
        self.operator.add_force(stage["next_u"], share, past.p, out, factor=-f_new)
        if past.force is not None:
            combine(out, (1.0, out), (-f_old, past.force))

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        """Nothing of a body at rest: it is relaxed."""
        b = stage.balance
        factor = b.force[0] * b.per_x("next_u")
        if b.dt == 0.0 or factor == 0.0:
            return
        strain, share = self._strain(stage)
        stress = self.operator.stress(strain)
        self.operator.assemble(
            matrix, stage["next_u"], stress, share=share, factor=factor, exact=not project
        )

    def _strain(self, stage: Stage) -> tuple[wp.array, float]:
        """C y' + p, and C."""
        past, share = self._past_of(stage), float(self.moduli @ self._step(stage).c)
        out = self.operator.strain(stage["next_u"])
        combine(out, (share, out), (1.0, past.p))
        return out, share

    def _past_of(self, stage: Stage) -> _Past:
        if self._past is None or self._past.stage is not stage:
            o, step, E = self.operator, self._step(stage), self.moduli
            y = o.strain(stage["u"])
            p = _sum([(-float(E @ step.c), y), *zip(E * step.e, stage.history, strict=True)])
            kept = _sum([(0.0, y), *zip(E, stage.history, strict=True)])
            force = None
            if stage.balance.force[1] != 0.0:
                force = zeros(o.node_count, wp.vec3d)
                o.add_strain_pull(stage["u"], o.stress(kept), force)
            self._past = _Past(stage, y, p, kept, force)
        return self._past

    def _step(self, stage: Stage) -> _Step:
        h, t = stage.balance.dt, self.times
        e, lost = np.exp(-h / t), -np.expm1(-h / t)
        return _Step(e, lost * t / h, e * h / t**2, lost / h - e / t)

    # the strains that are kept -------------------------------------------------------------------

    def advance(self, stage: Stage) -> tuple[wp.array, ...]:
        """The branches' strains at the end of a step."""
        step, y, after = self._step(stage), self._past_of(stage).y, self._after(stage)
        rows = zip(step.e, step.c, stage.history, strict=True)
        return tuple(_sum([(e, d), (c, after), (-c, y)]) for e, c, d in rows)

    def advance_change(
        self, stage: Stage, d: Changes, d_u: wp.array, p: Parameters
    ) -> tuple[wp.array, ...]:
        """Changes of `advance`; d_u: of the displacement at the step's end."""
        o, step = self.operator, self._step(stage)
        grown = o.strain_change(stage["next_u"], d_u)
        combine(grown, (1.0, grown), (-1.0, o.strain_change(stage["u"], d["u"])))
        longer = np.broadcast_to(p.get("branch_times", 0.0), self.times.shape)
        out = []
        for i, own in enumerate(stage.history):
            terms = [(step.c[i], grown)]
            if d.history:
                terms.append((step.e[i], d.history[i]))
            if longer[i] != 0.0:
                strained = self._strained(stage)
                terms += [
                    (longer[i] * step.e_slope[i], own),
                    (longer[i] * step.c_slope[i], strained),
                ]
            out.append(_sum(terms))
        return tuple(out)

    def advance_pull(
        self, stage: Stage, bars: Sequence[wp.array], pulls: Pulls, dual: Parameters
    ) -> wp.array:
        """Transpose of `advance_change`; returns the dual of d_u."""
        o, step = self.operator, self._step(stage)
        strained, out = self._strained(stage), zeros(o.node_count, wp.vec3d)
        grown = _sum(list(zip(step.c, bars, strict=True)))
        o.add_strain_pull(stage["next_u"], grown, out)
        o.add_strain_pull(stage["u"], grown, pulls["u"], factor=-1.0)
        by_time = np.zeros(len(bars))
        for i, (bar, own) in enumerate(zip(bars, stage.history, strict=True)):
            pulls.add_history(i, step.e[i], bar)
            by_time[i] = step.e_slope[i] * dot(bar, own) + step.c_slope[i] * dot(bar, strained)
        dual.add("branch_times", by_time)
        return out

    def _after(self, stage: Stage) -> wp.array:
        return self.operator.strain(stage["next_u"])

    def _strained(self, stage: Stage) -> wp.array:
        """y' - y."""
        after = self._after(stage)
        combine(after, (1.0, after), (-1.0, self._past_of(stage).y))
        return after

    # derivatives of the forces -------------------------------------------------------------------

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        o, step, E = self.operator, self._step(stage), self.moduli
        past, (f_new, f_old) = self._past_of(stage), stage.balance.force
        stiffer, longer = (np.broadcast_to(p.get(n, 0.0), E.shape) for n in _NAMES)
        strain, share = self._strain(stage)
        by_e, by_c = stiffer * step.e + E * longer * step.e_slope, E * longer * step.c_slope
        by_c = by_c + stiffer * step.c
        terms = [(-share, o.strain_change(stage["u"], d["u"]))]
        if d.history:
            terms += zip(E * step.e, d.history, strict=True)
        if np.any(stiffer) or np.any(longer):
            terms += [(float(by_c.sum()), self._strained(stage))]
            terms += zip(by_e, stage.history, strict=True)
        d_moduli = self._moduli_change(p)
        self._add_force_change(
            stage["next_u"], strain, _sum(terms), d["next_u"], d_moduli, share, -f_new, out
        )
        if f_old != 0.0:
            terms = [(0.0, past.y), *zip(stiffer, stage.history, strict=True)]
            if d.history:
                terms += zip(E, d.history, strict=True)
            self._add_force_change(
                stage["u"], past.kept, _sum(terms), d["u"], d_moduli, 0.0, -f_old, out
            )

    def _add_force_change(
        self, u, strain, d_strain, d_u, d_moduli, share: float, factor: float, out: wp.array
    ) -> None:
        """out += factor * change of the force of `strain` at u; it changes by share dy as well."""
        o = self.operator
        o.add_force_change(u, o.stress(strain), d_u, out, share=share, factor=factor)
        stress = o.stress(d_strain)
        if d_moduli is not None:
            combine(stress, (1.0, stress), (1.0, o.stress(strain, d_moduli)))
        o.add_strain_pull(u, stress, out, factor=factor)

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        o, step, E = self.operator, self._step(stage), self.moduli
        past, (f_new, f_old) = self._past_of(stage), stage.balance.force
        strain, share = self._strain(stage)
        o.add_force_change(
            stage["next_u"], o.stress(strain), y, pulls["next_u"], share=share, factor=-f_new
        )
        seen = o.strain_change(stage["next_u"], y)
        by_ratio = -f_new * o.by_moduli(strain, seen)
        bar = o.stress(seen)
        combine(bar, (-f_new, bar))
        o.add_strain_pull(stage["u"], bar, pulls["u"], factor=-share)
        along = dot(bar, self._strained(stage))
        own = np.array([dot(bar, d) for d in stage.history])
        dual.add("branch_moduli", step.e * own + step.c * along)
        dual.add("branch_times", E * (step.e_slope * own + step.c_slope * along))
        for i in range(len(E)):
            pulls.add_history(i, E[i] * step.e[i], bar)
        if f_old != 0.0:
            o.add_force_change(
                stage["u"], o.stress(past.kept), y, pulls["u"], share=0.0, factor=-f_old
            )
            seen = o.strain_change(stage["u"], y)
            by_ratio = by_ratio - f_old * o.by_moduli(past.kept, seen)
            bar = o.stress(seen)
            combine(bar, (-f_old, bar))
            dual.add("branch_moduli", np.array([dot(bar, d) for d in stage.history]))
            for i in range(len(E)):
                pulls.add_history(i, E[i], bar)
        self._pull_moduli(by_ratio, dual)

    def _moduli_change(self, p: Parameters) -> tuple[wp.array, wp.array] | None:
        """Of lambda / E and mu / E, along p."""
        if "lam" not in p and "mu" not in p:
            return None
        (ll, lm), (ml, mm) = _ratio_slopes(self._lam, self._mu)
        d_lam, d_mu = (np.broadcast_to(p.get(n, 0.0), self._lam.shape) for n in ("lam", "mu"))
        lam, mu = ll * d_lam + lm * d_mu, ml * d_lam + mm * d_mu
        return to_device(lam, wp.float64), to_device(mu, wp.float64)

    def _pull_moduli(self, by: np.ndarray, dual: Parameters) -> None:
        (ll, lm), (ml, mm) = _ratio_slopes(self._lam, self._mu)
        dual.add("lam", ll * by[:, 0] + ml * by[:, 1])
        dual.add("mu", lm * by[:, 0] + mm * by[:, 1])

    # energies ------------------------------------------------------------------------------------

    def kept_energy(self, history: Sequence[wp.array]) -> float:
        """Sum of E_i d_i . K d_i / 2 [J]."""
        stresses = [self.operator.stress(d) for d in history]
        rows = zip(self.moduli, history, stresses, strict=True)
        return 0.5 * float(sum(E * dot(d, s) for E, d, s in rows))

    def dissipated(self, stage: Stage, history: Sequence[wp.array]) -> float:
        """What a step took that ended with these strains [J]."""
        strained, total = self._strained(stage), 0.0
        for E, d, after in zip(self.moduli, stage.history, history, strict=True):
            flowed = _sum([(1.0, strained), (-1.0, after), (1.0, d)])
            total += 0.5 * E * dot(_sum([(1.0, d), (1.0, after)]), self.operator.stress(flowed))
        return float(total)


_NAMES = ("branch_moduli", "branch_times")


def _youngs_modulus(lam: np.ndarray, mu: np.ndarray) -> np.ndarray:
    return mu * (3.0 * lam + 2.0 * mu) / (lam + mu)


def _ratio_slopes(lam: np.ndarray, mu: np.ndarray):
    """Derivatives of lambda / E and of mu / E by lambda and mu."""
    E = _youngs_modulus(lam, mu)
    by_lam = mu**2 / (lam + mu) ** 2
    by_mu = (3.0 * lam**2 + 4.0 * lam * mu + 2.0 * mu**2) / (lam + mu) ** 2
    first = ((1.0 - lam * by_lam / E) / E, -lam * by_mu / E**2)
    return first, (-mu * by_lam / E**2, (1.0 - mu * by_mu / E) / E)


def _sum(terms: Sequence[tuple[float, wp.array]]) -> wp.array:
    """A new array: the sum of factor * array."""
    out = zeros(terms[0][1].shape, wp.vec3d)
    for first in range(0, len(terms), 3):
        part = [(float(c), x) for c, x in terms[first : first + 3]]
        combine(out, (1.0, out), *part)
    return out
