"""Bend, compress, stretch and twist a box of 16,224 tetrahedra (14,678 in the seed), for every law.

After Luo 2020, figure 4.9. The bottom is held, the top is moved by prescribed displacements in load
steps; each step is one Newton solve. Then the same box is pressed by 65 % between slippery plates
(figure 4.11): what of its volume stays, with the same lambda and mu in each law.
Run: python benchmarks/law_deformations.py [--out DIR] [--laws a,b] [--edge 0.08]. Writes
deformations.json and deformations.png.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import pliant as pl
from pliant.core.errors import SolverFailure
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.rest import find_rest
from pliant.fem.laws import LAWS
from pliant.fem.laws.law import lame_of

SIZE = np.array([0.8, 1.0, 0.8])
YOUNGS_MODULUS, POISSON_RATIO = 1e3, 0.4


def bend(x, s):
    """The top face travels along an arc of 60 degrees about z."""
    angle = s * np.radians(60.0)
    radius = SIZE[1] / max(angle, 1e-9)
    centre = np.array([-radius, 0.0])  # of the middle line, in x and y
    r = radius + x[:, 0]
    out = np.zeros_like(x)
    out[:, 0] = centre[0] + r * np.cos(angle) - x[:, 0]
    out[:, 1] = r * np.sin(angle) - x[:, 1]
    return out


def compress(x, s):
    """The top face goes down by 40 % of the height."""
    return np.broadcast_to([0.0, -0.4 * s * SIZE[1], 0.0], x.shape).copy()


def stretch(x, s):
    """The top face goes up by 80 % of the height."""
    return np.broadcast_to([0.0, 0.8 * s * SIZE[1], 0.0], x.shape).copy()


def twist(x, s):
    """The top face turns by 90 degrees about y."""
    a = s * np.radians(90.0)
    out = np.zeros_like(x)
    out[:, 0] = np.cos(a) * x[:, 0] + np.sin(a) * x[:, 2] - x[:, 0]
    out[:, 2] = -np.sin(a) * x[:, 0] + np.cos(a) * x[:, 2] - x[:, 2]
    return out


MOTIONS = {"bend": bend, "compress": compress, "stretch": stretch, "twist": twist}
LOAD_STEPS = 10
TALLEST = {"bend": 1.4, "compress": 1.0, "stretch": 1.9, "twist": 1.2}
"""Height of each row's frame in the picture [m]."""
SMALLEST = 1.0 / 320.0
TIGHT = 1e-9


def body_of(edge: float):
    """The box, its bottom at y = 0."""
    shape = pl.shapes.box(center=(0, SIZE[1] / 2, 0), size=tuple(SIZE))
    return pl.TetBody(shape, edge_length=edge)


def law_named(name: str):
    """StVK softens below a stretch of 0.577; it is continued from 0.6 on, as Luo 2020 does."""
    invertible = 0.6 if name == "st-venant-kirchhoff" else False
    return LAWS[name].from_moduli(YOUNGS_MODULUS, POISSON_RATIO, invertible=invertible)


def deform(body, law, motion, *, steps: int = LOAD_STEPS, tolerance: float = 1e-6):
    """Displacement after all load steps and what each took.

    The last step is solved to TIGHT, so that the order of convergence shows.
    """
    top = pl.shapes.half_space(normal=(0, -1, 0), offset=-SIZE[1] + 1e-9)
    bottom = pl.shapes.half_space(normal=(0, 1, 0), offset=1e-9)
    u = np.zeros((len(body.nodes), 3))
    record: dict = {"newton": [], "pcg": [], "halvings": 0}
    share, step = 0.0, 1.0 / steps
    began = time.perf_counter()
    while share < 1.0 - 1e-9:
        goal = min(1.0, share + step)
        held = [pl.Fixed(bottom), pl.Fixed(top, lambda x, t, s=goal: motion(x, s))]
        scene = pl.Scene(body, gravity=(0, 0, 0), fixed=held, law=law)
        system = ImplicitModel(scene)
        try:
            wanted = tolerance if goal < 1.0 - 1e-9 else TIGHT
            u, records, _ = find_rest(system, tolerance=wanted, start=u, ramp=False)
        except SolverFailure:
            step /= 2.0
            record["halvings"] += 1
            if step < SMALLEST:
                record["failed_at"] = share
                break
            continue
        share = goal
        step = min(1.5 * step, 1.0 / steps)
        record["newton"].append(sum(r.iterations for r in records))
        record["pcg"].append(sum(r.solver_iterations for r in records))
        record["last"] = records[-1].history
    record["seconds"] = time.perf_counter() - began
    record["complete"] = share >= 1.0 - 1e-9
    record["order"] = order_of(record.get("last", []))
    return u, record


def order_of(history: list[float]) -> float:
    """Largest p of |r_next| ~ |r|^p in the end of an iteration, NaN if it was too short to tell."""
    r = np.log([max(h, 1e-300) for h in history])
    fall = np.diff(r)
    orders = [b / a for a, b in zip(fall[:-1], fall[1:], strict=True) if a < -0.5 and b < -0.5]
    return float(max(orders[-3:], default=np.nan))


def volume_of(body, u) -> float:
    """Volume of the deformed tetrahedra."""
    x = (body.nodes + u)[body.cells]
    return float(np.linalg.det(x[:, 1:] - x[:, :1]).sum() / 6.0)


def pressed() -> dict[str, float]:
    """Volume [m^3] after pressing by 65 % between slippery plates, nu = 0.49.

    A homogeneous state, so a coarse body gives it exactly. A fine one may wrinkle: free sides of an
    incompressible solid are unstable below a stretch of 0.54 (Biot 1963), and 0.35 is asked for.
    """
    body = body_of(0.3)
    lam, mu = lame_of(YOUNGS_MODULUS, 0.49)
    low = [pl.Fixed(pl.shapes.half_space(normal=(0, 1, 0), offset=1e-9), axes="y")]
    # two faces slide along themselves: without them the box could drift and turn
    low.append(pl.Fixed(_side(0), axes="x"))
    low.append(pl.Fixed(_side(2), axes="z"))
    top = pl.shapes.half_space(normal=(0, -1, 0), offset=-SIZE[1] + 1e-9)
    out = {}
    for form in (pl.laws.StableNeoHookean, pl.laws.VolumeGuarding, pl.laws.VolumeGuardingPrinted):
        held = [*low, pl.Fixed(top, (0, -0.65 * SIZE[1], 0), axes="y")]
        scene = pl.Scene(body, gravity=(0, 0, 0), fixed=held, law=form(lam=lam, mu=mu))
        u, _, _ = find_rest(ImplicitModel(scene), tolerance=1e-8, load_steps=13)
        out[form.name] = volume_of(body, u)
    return out


def _side(axis: int):
    """The face at the low end of an axis: a plane of symmetry of the pressed box."""
    normal = np.zeros(3)
    normal[axis] = 1.0
    return pl.shapes.half_space(normal=tuple(normal), offset=-SIZE[axis] / 2 + 1e-9)


def draw(body, shapes, path: Path) -> None:
    """One column per law, one row per motion."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LightSource
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    names = list(shapes)
    rows = list(MOTIONS)
    figure = plt.figure(figsize=(1.7 * len(names), 2.0 * len(rows)))
    facets = body.surface.facets
    light = LightSource(azdeg=225, altdeg=45)
    for j, name in enumerate(names):
        for i, motion in enumerate(rows):
            axes = figure.add_subplot(
                len(rows), len(names), i * len(names) + j + 1, projection="3d"
            )
            u = shapes[name].get(motion)
            if u is not None:
                points = body.surface.positions(body.nodes + u)[:, [0, 2, 1]]
                triangles = points[facets][:, ::-1]
                faces = Poly3DCollection(
                    triangles, facecolors="#7aa6c2", edgecolors="#00000018", linewidths=0.15,
                    shade=True, lightsource=light,
                )  # fmt: skip
                axes.add_collection3d(faces)
            axes.set_xlim(-0.95, 0.65)
            axes.set_ylim(-0.8, 0.8)
            axes.set_zlim(0.0, TALLEST[motion])
            axes.set_box_aspect((1.6, 1.6, TALLEST[motion]), zoom=1.35)
            axes.view_init(elev=12, azim=-70)
            axes.set_axis_off()
            if i == 0:
                axes.set_title(name, fontsize=7)
    figure.subplots_adjust(0, 0, 1, 0.96, 0, 0)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run, write, draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--edge", type=float, default=0.08)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    body = body_of(asked.edge)
    table: dict = {"cells": len(body.cells), "nodes": len(body.nodes), "laws": {}}
    shapes: dict = {}
    table["pressed by 65 %"] = pressed()
    for name, volume in table["pressed by 65 %"].items():
        print(f"{name:24} keeps {volume:.4f} of {np.prod(SIZE):.2f} when pressed by 65 %")
    print(f"{len(body.cells)} tetrahedra, {len(body.nodes)} nodes")
    for name in asked.laws.split(","):
        law = law_named(name)
        shapes[name], table["laws"][name] = {}, {}
        for label, motion in MOTIONS.items():
            u, record = deform(body, law, motion)
            record["volume"] = volume_of(body, u) / float(np.prod(SIZE))
            shapes[name][label] = u
            table["laws"][name][label] = record
            print(
                f"{name:20} {label:9} {'done' if record['complete'] else 'FAILED':7}"
                f"newton median {np.median(record['newton'] or [0]):4.1f} "
                f"max {max(record['newton'] or [0]):3d} halvings {record['halvings']:2d} "
                f"order {record['order']:.2f} volume {record['volume']:.3f} "
                f"{record['seconds']:6.1f} s",
                flush=True,
            )
    (asked.out / "deformations.json").write_text(json.dumps(table, indent=1))
    (asked.out / "deformations.md").write_text(page(table))
    draw(body, shapes, asked.out / "deformations.png")


def page(table: dict) -> str:
    """Newton iterations (median, most), halvings, order of the last step, by law and motion."""
    lines = [
        f"{table['cells']:,} tetrahedra, {LOAD_STEPS} load steps a motion: Newton iterations a",
        "step, median and most; order of convergence of the last step; steps that were halved.", "",
        "| law | " + " | ".join(MOTIONS) + " |", "|---" * (1 + len(MOTIONS)) + "|",
    ]  # fmt: skip
    for name, motions in table["laws"].items():
        cells = []
        for record in motions.values():
            newton = record["newton"] or [0]
            text = f"{np.median(newton):g}, {max(newton)}; {record['order']:.1f}"
            text += f"; {record['halvings']} halved" if record["halvings"] else ""
            cells.append(text if record["complete"] else f"stopped at {record['failed_at']:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
