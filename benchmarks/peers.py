"""The same step of the same body in other libraries, as closely as each can do it.

Body: 52 x 16 x 32 full hexahedra of 0.05 m, held at its low-x end, E = 2000, nu = 0.3, density 1.
Step: re-assemble A = (1 / (theta dt) + alpha) M + (theta dt + beta) K, then solve A x = b to a
relative residual of 1e-6 by conjugate gradients with a Jacobi preconditioner.
What differs is stated with each peer.
"""

from time import perf_counter

import numpy as np

CELLS = (52, 16, 32)
H = 0.05
E, NU, RHO = 2000.0, 0.3, 1.0
DT, THETA, ALPHA, BETA = 0.01, 0.6, 0.1, 0.01
LAM = E * NU / ((1 + NU) * (1 - 2 * NU))
MU = E / (2 * (1 + NU))
C_MASS = 1 / (THETA * DT) + ALPHA
C_STIFF = THETA * DT + BETA


def ngsolve(repeat: int = 3) -> dict:
    """NGSolve: linear elasticity (no rotations), consistent mass, two threads."""
    import ngsolve as ng
    from ngsolve.meshes import MakeHexMesh

    def scaled(x, y, z):
        return x * CELLS[0] * H, y * CELLS[1] * H, z * CELLS[2] * H

    mesh = MakeHexMesh(nx=CELLS[0], ny=CELLS[1], nz=CELLS[2], mapping=scaled, cuboid_mapping=True)
    space = ng.VectorH1(mesh, order=1, dirichlet="back")
    u, v = space.TnT()

    def strain(w):
        return 0.5 * (ng.Grad(w) + ng.Grad(w).trans)

    def stress(w):
        return LAM * ng.Trace(strain(w)) * ng.Id(3) + 2 * MU * strain(w)

    a = ng.BilinearForm(space, symmetric=False)
    a += (C_MASS * RHO * u * v + C_STIFF * ng.InnerProduct(stress(u), strain(v))) * ng.dx
    f = ng.LinearForm(ng.CF((0, -9.81, 1.0)) * v * ng.dx)
    pre = ng.Preconditioner(a, "local")
    best = {"assembly_ms": np.inf, "solve_ms": np.inf, "iterations": 0}
    with ng.TaskManager():
        f.Assemble()
        for _ in range(repeat):
            t = perf_counter()
            a.Assemble()
            assembly = perf_counter() - t
            x = ng.GridFunction(space)
            t = perf_counter()
            inverse = ng.CGSolver(a.mat, pre.mat, maxiter=2000, tol=1e-6, printrates=False)
            x.vec.data = inverse * f.vec
            solve = perf_counter() - t
            best["assembly_ms"] = min(best["assembly_ms"], 1e3 * assembly)
            best["solve_ms"] = min(best["solve_ms"], 1e3 * solve)
            best["iterations"] = inverse.GetSteps()
    return best | {"nodes": mesh.nv, "differs": "no rotations, consistent mass, strong wall"}


def scikit_fem(repeat: int = 1) -> dict:
    """scikit-fem: linear elasticity (no rotations), consistent mass, one thread; SciPy's CG."""
    import skfem
    from scipy.sparse.linalg import LinearOperator, cg
    from skfem.helpers import dot
    from skfem.models.elasticity import linear_elasticity

    ticks = [np.linspace(0, n * H, n + 1) for n in CELLS]
    mesh = skfem.MeshHex.init_tensor(*ticks)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex1()), intorder=3)
    stiffness = linear_elasticity(LAM, MU)

    @skfem.BilinearForm
    def mass(u, v, w):
        return RHO * dot(u, v)

    held = basis.get_dofs(lambda x: x[0] < 1e-9).all()
    best = {"assembly_ms": np.inf, "solve_ms": np.inf, "iterations": 0}
    for _ in range(repeat):
        t = perf_counter()
        A = C_MASS * mass.assemble(basis) + C_STIFF * stiffness.assemble(basis)
        assembly = perf_counter() - t
        b = np.zeros(A.shape[0])
        b[1::3] = -9.81 * H**3
        A, b = skfem.enforce(A, b, D=held)
        inverse = 1.0 / A.diagonal()
        count = [0]

        def tick(_, count=count):
            count[0] += 1

        t = perf_counter()
        pre = LinearOperator(A.shape, matvec=lambda r, d=inverse: d * r)
        cg(A, b, rtol=1e-6, M=pre, callback=tick)
        solve = perf_counter() - t
        best["assembly_ms"] = min(best["assembly_ms"], 1e3 * assembly)
        best["solve_ms"] = min(best["solve_ms"], 1e3 * solve)
        best["iterations"] = count[0]
    return best | {"nodes": mesh.p.shape[1], "differs": "no rotations, consistent mass, one thread"}


def felupe(repeat: int = 1) -> dict:
    """FElupe: linear elasticity (no rotations), consistent mass, one thread; SciPy's CG."""
    import felupe as fem
    from scipy.sparse.linalg import LinearOperator, cg

    ends = tuple(n * H for n in CELLS)
    mesh = fem.Cube(a=(0, 0, 0), b=ends, n=tuple(n + 1 for n in CELLS))
    field = fem.FieldContainer([fem.Field(fem.RegionHexahedron(mesh), dim=3)])
    solid = fem.SolidBody(fem.LinearElastic(E=E, nu=NU), field, density=RHO)
    free = np.flatnonzero(np.repeat(mesh.points[:, 0] > 1e-9, 3))
    best = {"assembly_ms": np.inf, "solve_ms": np.inf, "iterations": 0}
    for _ in range(repeat):
        t = perf_counter()
        A = (C_MASS * solid.assemble.mass() + C_STIFF * solid.assemble.matrix()).tocsr()
        assembly = perf_counter() - t
        b = np.zeros(A.shape[0])
        b[1::3] = -9.81 * H**3
        A, b = A[free][:, free], b[free]
        inverse, count = 1.0 / A.diagonal(), [0]

        def tick(_, count=count):
            count[0] += 1

        t = perf_counter()
        pre = LinearOperator(A.shape, matvec=lambda r, d=inverse: d * r)
        cg(A, b, rtol=1e-6, M=pre, callback=tick)
        solve = perf_counter() - t
        best["assembly_ms"] = min(best["assembly_ms"], 1e3 * assembly)
        best["solve_ms"] = min(best["solve_ms"], 1e3 * solve)
        best["iterations"] = count[0]
    return best | {"nodes": len(mesh.points), "differs": "no rotations, consistent mass, 1 thread"}


def newton(repeat: int = 2) -> dict:
    """Newton's vertex block descent: 10 sweeps whatever they reach, in single precision."""
    import newton as nt
    import warp as wp

    wp.set_device("cpu")
    builder = nt.ModelBuilder()
    builder.add_soft_grid(
        pos=wp.vec3(0.0, 0.0, 0.0), rot=wp.quat_identity(), vel=wp.vec3(0.0, 0.0, 0.0),
        dim_x=CELLS[0], dim_y=CELLS[1], dim_z=CELLS[2], cell_x=H, cell_y=H, cell_z=H,
        density=RHO, k_mu=MU, k_lambda=LAM, k_damp=BETA, fix_left=True,
    )  # fmt: skip
    builder.color()
    model = builder.finalize(device="cpu")
    solver = nt.solvers.SolverVBD(model, iterations=10)
    before, after, control = model.state(), model.state(), model.control()
    solver.step(before, after, control, None, DT)
    best = np.inf
    for _ in range(repeat):
        t = perf_counter()
        solver.step(before, after, control, None, DT)
        best = min(best, perf_counter() - t)
    differs = "5 neo-Hookean tetrahedra a cell, f32, 10 sweeps without a residual, 1 thread"
    return {"assembly_ms": 0.0, "solve_ms": 1e3 * best, "iterations": 10,
            "nodes": int(model.particle_count), "differs": differs}  # fmt: skip


def mujoco(repeat: int = 2) -> dict:
    """MuJoCo's deformable grid at a quarter of the resolution: finer ones take it minutes."""
    import mujoco as mj

    coarse = 4
    n = tuple(c // coarse + 1 for c in CELLS)
    xml = f"""<mujoco><option timestep="{DT}" integrator="discrete"/>
      <size memory="4G"/><worldbody>
      <flexcomp name="body" type="grid" dim="3" count="{n[0]} {n[1]} {n[2]}"
       spacing="{coarse * H} {coarse * H} {coarse * H}" mass="{RHO * np.prod(CELLS) * H**3}"
       radius="0.001"><contact selfcollide="none" contype="0" conaffinity="0"/>
       <elasticity young="{E}" poisson="{NU}" damping="{BETA}"/>
       <pin gridrange="0 0 0 0 {n[1] - 1} {n[2] - 1}"/></flexcomp></worldbody></mujoco>"""
    model = mj.MjModel.from_xml_string(xml)
    data = mj.MjData(model)
    mj.mj_step(model, data)
    best = np.inf
    for _ in range(repeat):
        t = perf_counter()
        mj.mj_step(model, data)
        best = min(best, perf_counter() - t)
    return {"assembly_ms": 0.0, "solve_ms": 1e3 * best, "iterations": 0,
            "nodes": int(np.prod(n)),
            "differs": f"1/{coarse**3} of the cells, tetrahedra, 'discrete' integrator, 1 thread",
            "cells": int(np.prod([m - 1 for m in n]))}  # fmt: skip


PEERS = {
    "ngsolve": ngsolve, "scikit-fem": scikit_fem, "felupe": felupe, "newton": newton,
    "mujoco": mujoco,
}  # fmt: skip
