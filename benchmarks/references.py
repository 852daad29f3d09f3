"""Reference values of nearly incompressible bodies, by high order mixed elements in NGSolve.

    python benchmarks/references.py            # writes reference_values.json beside this file

Displacement u of order p and continuous pressure of order p - 1 (Taylor and Hood, 1973):

    int 2 mu eps(u) : eps(v) + q div u + p div v - p q / lambda = int rho g . v,

which does not lock for any Poisson's ratio below 1/2. Meshes are graded geometrically towards the
clamped edges, where the stress is singular. Every number is computed on a first mesh, with a higher
order on the same mesh, and on a mesh that reaches further into the singularity. Both changes are
added to the first result; the sum of their sizes is its error, which errs on the safe side.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import ngsolve as ng
import numpy as np
from netgen.geom2d import SplineGeometry
from ngsolve.meshes import MakeHexMesh
from scipy.linalg import eigh

log = logging.getLogger("references")

OUT = Path(__file__).with_name("reference_values.json")

LENGTH, WIDTH = 0.1, 0.03
YOUNG, DENSITY, GRAVITY = 263824.0, 1070.0, 9.80709
RATIOS = (0.3, 0.45, 0.49, 0.499, 0.4999)

ALONG = [0.03, 0.055, 0.08, 0.1]
"""Cells along the beam beyond the graded part [m]."""

REACH = 0.012
"""Where grading towards the clamped face begins [m]."""

COOK_RATIOS = (1.0 / 3.0, 0.4999)
COOK_CORNERS = ((0.0, 0.0), (48.0, 44.0), (48.0, 60.0), (0.0, 44.0))

# Conditions on the planes y = 0 and z = 0 of a quarter beam, by the motion's symmetry: components
# that vanish on each. A mirrored motion keeps its tangential components, an odd one its normal one.
SYMMETRIES = {
    "bending": {"left": "xz", "bottom": "z"},
    "torsion": {"left": "xz", "bottom": "xy"},
    "axial": {"left": "y", "bottom": "z"},
}


def lame(young: float, ratio: float) -> tuple[float, float]:
    """Lame's lambda and mu [Pa]."""
    return young * ratio / ((1 + ratio) * (1 - 2 * ratio)), young / (2 * (1 + ratio))


def quarter_beam(layers: int) -> ng.Mesh:
    """Hexahedra of 0 <= x <= L, 0 <= y, z <= W/2; `layers` cells, each 3.5 times smaller, at x = 0.

    The edges y = W/2 and z = W/2 are graded as well, as the singularity sits where they meet x = 0.
    """
    half = WIDTH / 2
    small = [REACH / 3.5**k for k in range(layers)]
    xs = np.array([0.0, *small[::-1], *ALONG])
    ys = half - np.array([half, 9e-3, *(4e-3 / 3.5**k for k in range(layers - 1)), 0.0])

    def at(t: float, ticks: np.ndarray) -> float:
        return float(np.interp(t, np.linspace(0.0, 1.0, len(ticks)), ticks))

    return MakeHexMesh(
        nx=len(xs) - 1, ny=len(ys) - 1, nz=len(ys) - 1,
        mapping=lambda x, y, z: (at(x, xs), at(y, ys), at(z, ys)),
    )  # fmt: skip


def mixed_space(mesh: ng.Mesh, order: int, held: dict[str, str]) -> Any:
    """Taylor-Hood pair; held: boundary name to the components that vanish there."""
    by_axis = {
        f"dirichlet{axis}": "|".join(name for name, axes in held.items() if axis in axes)
        for axis in "xyz"[: mesh.dim]
    }
    return ng.VectorH1(mesh, order=order, **by_axis) * ng.H1(mesh, order=order - 1)


def mixed_stiffness(space: Any, young: float, ratio: float) -> Any:
    """The symmetric form above; its pressure block is negative, so L D L^T needs no pivots."""
    lam, mu = lame(young, ratio)
    (u, p), (v, q) = space.TnT()

    def strain(w: Any) -> Any:
        return 0.5 * (ng.Grad(w) + ng.Grad(w).trans)

    a = ng.BilinearForm(space, symmetric=True)
    a += 2 * mu * ng.InnerProduct(strain(u), strain(v)) * ng.dx
    a += (q * ng.div(u) + p * ng.div(v) - p * q / lam) * ng.dx
    return a.Assemble()


def lowest(stiffness: Any, inverse: Any, mass: Any, count: int) -> np.ndarray:
    """Lowest eigenvalues w^2 of K x = w^2 M x by subspace iteration (Bathe, 1971)."""
    rng = np.random.default_rng(1)
    block = ng.MultiVector(stiffness.CreateColVector(), count + 4)
    for vector in block:
        vector.FV().NumPy()[:] = rng.standard_normal(len(vector))
    before = values = np.zeros(count)
    for _ in range(60):
        moved = (mass * block).Evaluate()
        block[:] = inverse * moved
        K = ng.InnerProduct(block, (stiffness * block).Evaluate()).NumPy()
        M = ng.InnerProduct(block, (mass * block).Evaluate()).NumPy()
        values, vectors = eigh(0.5 * (K + K.T), 0.5 * (M + M.T))
        block[:] = (block * ng.Matrix(vectors)).Evaluate()
        if np.abs(values[:count] - before).max() < 1e-8 * values[0]:
            break
        before = values[:count]
    return values[:count]


def beam_values(order: int, layers: int, ratio: float) -> dict[str, float]:
    """Frequencies [Hz] of the clamped beam and its linear static drop [mm]."""
    mesh = quarter_beam(layers)
    out: dict[str, float] = {}
    for kind, planes in SYMMETRIES.items():
        space = mixed_space(mesh, order, {"back": "xyz", **planes})
        (u, _), (v, _) = space.TnT()
        stiffness = mixed_stiffness(space, YOUNG, ratio)
        mass = ng.BilinearForm(DENSITY * u * v * ng.dx, symmetric=True).Assemble()
        inverse = stiffness.mat.Inverse(space.FreeDofs(), inverse="sparsecholesky")
        found = lowest(stiffness.mat, inverse, mass.mat, 2 if kind == "bending" else 1)
        hertz = np.sqrt(found) / (2 * np.pi)
        out[f"{kind}_hz"] = float(hertz[0])
        if kind == "bending":
            out["second_bending_hz"] = float(hertz[1])
            weight = ng.LinearForm(DENSITY * GRAVITY * v[1] * ng.dx).Assemble()
            state = ng.GridFunction(space)
            state.vec.data = inverse * weight.vec
            out["drop_mm"] = 1e3 * float(state.components[0](mesh(LENGTH, 0.0, 0.0))[1])
    return out


def cook_mesh(levels: int) -> ng.Mesh:
    """Triangles, refined geometrically towards all four corners."""
    geometry = SplineGeometry()
    points = [geometry.AppendPoint(*c, hpref=1) for c in COOK_CORNERS]
    for k, name in enumerate(("lower", "right", "upper", "left")):
        geometry.Append(["line", points[k], points[(k + 1) % 4]], bc=name)
    mesh = ng.Mesh(geometry.GenerateMesh(maxh=10.0))
    mesh.RefineHP(levels)
    return mesh


def cook_values(order: int, levels: int, ratio: float) -> dict[str, float]:
    """Vertical displacement at (48, 52) and (48, 60), plane strain, E = t = F = 1."""
    mesh = cook_mesh(levels)
    space = mixed_space(mesh, order, {"left": "xy"})
    (_, _), (v, _) = space.TnT()
    stiffness = mixed_stiffness(space, 1.0, ratio)
    load = ng.LinearForm((1.0 / 16.0) * v[1] * ng.ds("right")).Assemble()
    state = ng.GridFunction(space)
    state.vec.data = stiffness.mat.Inverse(space.FreeDofs(), inverse="umfpack") * load.vec
    u = state.components[0]
    return {"mid_edge": float(u(mesh(48.0, 52.0))[1]), "corner": float(u(mesh(48.0, 60.0))[1])}


def with_errors(compute: Callable[..., dict[str, float]], ratio: float, runs: Any) -> dict:
    """Values and errors from three runs: (order, grading), a higher order, a finer grading."""
    start = perf_counter()
    first, order, grading = (compute(p, levels, ratio) for p, levels in runs)
    out = {}
    for name, value in first.items():
        by_order, by_grading = order[name] - value, grading[name] - value
        out[name] = {
            "value": value + by_order + by_grading,
            "error": abs(by_order) + abs(by_grading),
        }
    found = {"poisson_ratio": ratio, **out, "seconds": round(perf_counter() - start, 1)}
    log.info("%s", json.dumps(found))
    return found


def main() -> None:
    """Compute everything and write the file."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ng.SetNumThreads(1)
    beam_runs = ((3, 3), (4, 3), (3, 4))
    cook_runs = ((7, 6), (8, 6), (7, 8))
    record = {
        "made_by": f"benchmarks/references.py, NGSolve {ng.__version__}",
        "elements": "Taylor-Hood, displacement of order p, continuous pressure of order p - 1",
        "error": "size of the changes by a higher order and by a finer grading, added up",
        "beam": {
            "size_m": [LENGTH, WIDTH, WIDTH], "clamped": "x = 0", "youngs_modulus": YOUNG,
            "density": DENSITY, "gravity": GRAVITY, "mesh": "graded hexahedra, quarter of the beam",
            "runs_order_layers": beam_runs,
            "values": [with_errors(beam_values, nu, beam_runs) for nu in RATIOS],
        },
        "cook": {
            "plane": "strain", "corners": COOK_CORNERS, "youngs_modulus": 1.0, "force": 1.0,
            "mesh": "triangles, refined geometrically towards the corners",
            "runs_order_levels": cook_runs,
            "values": [with_errors(cook_values, nu, cook_runs) for nu in COOK_RATIOS],
        },
    }  # fmt: skip
    OUT.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
