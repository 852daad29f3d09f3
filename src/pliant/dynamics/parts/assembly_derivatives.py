"""Derivatives of steps of several parts: each part's own (dynamics.implicit_derivatives), and those
of the contact between them, with one matrix for all.

The matrix is exact: what turns with the normals and what friction gains with the pressure is in it,
so it is not symmetric, and is factorised. Parameters of a part are called after it, as jelly.lam.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from scipy import sparse
from scipy.sparse.linalg import splu

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.model import Parameters, State
from pliant.dynamics.parts.barrier import BarrierBetween
from pliant.dynamics.parts.barrier_derivatives import BarrierDerivatives
from pliant.dynamics.parts.between_derivatives import BetweenDerivatives
from pliant.dynamics.parts.contact_numbers import stiffness_change, stiffness_pull

if TYPE_CHECKING:
    from pliant.dynamics.parts.assembly import AssemblyModel

MOST_NODES = 30_000
"""Of all parts: factors of more do not fit into the memory of a small machine."""

MOST_CORRECTIONS = 60
"""Solves for the growth of friction with obstacles, as in dynamics.implicit_derivatives."""


class AssemblyDerivatives:
    """Tangent and adjoint of the steps of parts."""

    def __init__(self, model: "AssemblyModel"):
        self.model = model
        if model.node_count > MOST_NODES:
            raise SolverFailure(
                f"Derivatives of parts are for up to {MOST_NODES:,} nodes, not "
                f"{model.node_count:,}: use larger cells."
            )
        self._own = [m.derivatives for m in model.models]
        self._step: _LinearStep | None = None

    # parameters ----------------------------------------------------------------------------------

    def of_parts(self, p: Parameters) -> list[Parameters]:
        """What of a direction is each part's."""
        heads = [f"{name}." for name in self.model.names]
        return [
            Parameters({k.removeprefix(head): v for k, v in p.items() if k.startswith(head)})
            for head in heads
        ]

    def _add_duals(self, own: Sequence[Parameters], dual: Parameters) -> None:
        for name, part in zip(self.model.names, own, strict=True):
            for key, value in part.items():
                dual.add(f"{name}.{key}", value)

    # the start -----------------------------------------------------------------------------------

    def initial_tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """Changes of the initial state: no part pushes another yet."""
        split = [self.of_parts(p) for p in directions]
        found = [
            own.initial_tangents(part, [p[k] for p in split])
            for k, (own, part) in enumerate(zip(self._own, self.model.split(state), strict=True))
        ]
        return [self.model.joined([f[i] for f in found]) for i in range(len(directions))]

    def initial_adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """Transpose of `initial_tangents`."""
        duals = [Parameters() for _ in self._own]
        parts = zip(self._own, self.model.split(state), self.model.split(bar), duals, strict=True)
        for own, part, part_bar, part_dual in parts:
            own.initial_adjoint(part, part_bar, part_dual)
        self._add_duals(duals, dual)

    # steps ---------------------------------------------------------------------------------------

    def tangents(
        self,
        before: State,
        after: State,
        changes: Sequence[State],
        directions: Sequence[Parameters],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """Changes of `after` by changes of `before` and of the parameters."""
        found = list(changes)
        if not directions:
            return found
        split = [self.of_parts(p) for p in directions]
        for start, end, scheme in self.model.parts(before, after):
            step = self._linear(start, end, scheme)
            found = [step.tangent(c, p) for c, p in zip(found, split, strict=True)]
        return found

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """A backward run begins; its solves are exact."""

    def adjoint(self, before: State, after: State, bar: State, dual: Parameters) -> State:
        """Dual of `before` from that of `after`; adds the parameters' share to `dual`."""
        for start, end, scheme in reversed(self.model.parts(before, after)):
            duals = [Parameters() for _ in self._own]
            bar = self._linear(start, end, scheme).adjoint(bar, duals)
            self._add_duals(duals, dual)
        return bar

    def _linear(self, before: State, after: State, scheme: Integrator) -> "_LinearStep":
        """Made once for the tangents of a step and its adjoint."""
        if self._step is None or not self._step.is_of(before, after):
            self._step = _LinearStep(self.model, before, after, scheme)
        return self._step


class _LinearStep:
    """A step that was taken, its exact matrix factorised."""

    def __init__(self, model: "AssemblyModel", before: State, after: State, scheme: Integrator):
        self.model, self.before, self.after, self.scheme = model, before, after, scheme
        self._version = model.version
        self._starts = model.split(before)
        self._own = [m.derivatives for m in model.models]
        ends = zip(self._own, self._starts, model.split(after), strict=True)
        self._stages = [
            own.linearise(start, end, scheme, precondition=False) for own, start, end in ends
        ]
        between = model.between(before, scheme.force)
        self._softer = between.softer
        self._follows = model.scene.contact.stiffness is None
        self._between: BetweenDerivatives | BarrierDerivatives | None = None
        A: Any = sparse.block_diag([m.matrix.to_scipy() for m in model.models], format="csr")
        if between:
            barrier = isinstance(between, BarrierBetween)
            kind: Any = BarrierDerivatives if barrier else BetweenDerivatives
            self._between = kind(between, after.u.numpy(), after.v.numpy())
            A = A + self._between.matrix(scheme.next_u[0], scheme.next_v[0])  # pyright: ignore
        self._free = np.flatnonzero(model.matrix.free.numpy().reshape(-1) > 0.0)
        self._A = A[self._free][:, self._free].tocsc()
        try:
            self._factors = splu(self._A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1)
        except RuntimeError as error:  # SuperLU: "Factor is exactly singular"
            raise SolverFailure(
                f"The derivative of the step at t = {before.t:g} s failed: its matrix is singular."
            ) from error

    def is_of(self, before: State, after: State) -> bool:
        """Whether it is of this step, and of the numbers that the model has now."""
        same = self.before is before and self.after is after
        return same and self._version == self.model.version

    def tangent(self, change: State, p: Sequence[Parameters]) -> State:
        """The change of the end."""
        model, scheme = self.model, self.scheme
        changes = model.split(change)
        own = list(zip(self._own, self._stages, changes, p, strict=True))
        b = np.concatenate([o.right_hand_side(stage, c, q).numpy() for o, stage, c, q in own])
        if self._between is not None:
            du, dv, da = (f.numpy() for f in change.fields())
            u, v = (r[1] * du + r[2] * dv + r[3] * da for r in (scheme.next_u, scheme.next_v))
            b = b + self._between.change(u, v, du, self._stiffness_change(p))
        dx = model.slices.of(to_device(self._solve(b), wp.vec3d))
        return model.joined([
            o.advanced(stage, scheme, x, c, q, self.after.t)
            for (o, stage, c, q), x in zip(own, dx, strict=True)
        ])  # fmt: skip

    def adjoint(self, bar: State, duals: Sequence[Parameters]) -> State:
        """The dual of the start; adds the parameters' share."""
        model, scheme = self.model, self.scheme
        own = list(zip(self._own, self._stages, model.split(bar), duals, strict=True))
        sides = [o.adjoint_side(stage, scheme, b, dual) for o, stage, b, dual in own]
        y = self._solve(np.concatenate([side[0].numpy() for side in sides]), transposed=True)
        shares = model.slices.of(to_device(y, wp.vec3d))
        past = [
            o.adjoint_past(stage, scheme, share, side[1], side[2], dual, start)
            for (o, stage, _, dual), share, side, start in zip(
                own, shares, sides, self._starts, strict=True
            )
        ]
        found = model.joined(past)
        if self._between is None:
            return found
        pulled = self._between.pull(y)
        self._pull_stiffness(pulled.stiffness, duals)
        arrays = dict(found.arrays)
        for z, name in enumerate(("u", "v", "a")):
            more = scheme.next_u[z + 1] * pulled.next_u + scheme.next_v[z + 1] * pulled.next_v
            more = more + pulled.u if name == "u" else more
            arrays[name] = to_device(arrays[name].numpy() + more, wp.vec3d)
        return State(arrays, found.t)

    # the law between parts follows the softer one's modulus

    def _stiffness_change(self, p: Sequence[Parameters]) -> np.ndarray:
        if not self._follows:
            return np.zeros(len(self._softer))
        return np.array([stiffness_change(self.model, k, q) for k, q in enumerate(p)])[self._softer]

    def _pull_stiffness(self, bar: np.ndarray, duals: Sequence[Parameters]) -> None:
        if self._follows:
            each = np.bincount(self._softer, bar, len(duals))
            for k, dual in enumerate(duals):
                stiffness_pull(self.model, k, float(each[k]), dual)

    # solves

    def _solve(self, b: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """(A - E)^-1 b or its transpose on the free components; E: the growth of ContactTerm."""
        x = self._by_factors(b, transposed)
        growing = [m.touch is not None and m.touch.grows for m in self.model.models]
        if not any(growing):
            return x
        goal = self.model.scene.tolerance * float(np.sqrt(np.square(b).sum()))
        counted = np.zeros_like(b)
        for _ in range(MOST_CORRECTIONS):
            shares = self.model.slices.of(to_device(x, wp.vec3d))
            grown = np.concatenate([
                m.touch.growth(stage, share, transposed=transposed).numpy() if grows
                else np.zeros((m.node_count, 3))
                for m, grows, stage, share in zip(
                    self.model.models, growing, self._stages, shares, strict=True
                )
            ])  # fmt: skip
            rest = grown - counted
            if float(np.sqrt(np.square(rest).sum())) <= goal:
                return x
            x, counted = x + self._by_factors(rest, transposed), grown
        raise SolverFailure(
            "The derivative of a step failed: friction dominates it, use a smaller time step."
        )

    def _by_factors(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        right = b.reshape(-1)[self._free]
        trans = "T" if transposed else "N"
        A = self._A.T if transposed else self._A
        found = self._factors.solve(right, trans=trans)
        found += self._factors.solve(right - A @ found, trans=trans)  # pivots were chosen loosely
        x = np.zeros(b.size)
        x[self._free] = found
        return x.reshape(b.shape)
