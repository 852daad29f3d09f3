"""The pictures of README and gallery, drawn by the code they show.

    python docs/pictures.py            all of them, into docs/images
    python docs/pictures.py advections cut_cells

Each stays below 250 kB. fine_mesh needs PLIANT_DATA, demo a `make demo` before it, editor a
Chromium (see editor_picture.py), law_deformations some minutes.
"""

import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import pliant as pl
from pliant.app.describing.scenes import load_builtin
from pliant.app.pictures.picture import Cut, Studio
from pliant.app.render.picture_files import _palette
from pliant.fem.bodies.render_mesh import load_render_mesh
from pliant.fem.forces.moving_field import MovingField

IMAGES = Path(__file__).parent / "images"
INK = (60, 66, 74)
LIMIT = 250_000


def save(name: str, image: np.ndarray | Image.Image) -> Path:
    """Write a PNG below the limit: in full colour if that is small enough, else in 256."""
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    path = IMAGES / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    picture.save(path, optimize=True)
    if path.stat().st_size > LIMIT:
        palette = _palette([np.asarray(picture)])
        picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(
            path, optimize=True
        )
    size = path.stat().st_size
    if size > LIMIT:
        raise SystemExit(f"{path}: {size} bytes are more than {LIMIT}")
    return path


def titled(image: np.ndarray, title: str) -> np.ndarray:
    """The picture with a line of text at its top."""
    picture = Image.fromarray(image)
    font = ImageFont.load_default(size=max(12, image.shape[0] // 22))
    ImageDraw.Draw(picture).text((12, 8), title, fill=INK, font=font)
    return np.asarray(picture)


def advections() -> Path:
    """Three advections of a disc that hangs by its top (as Weiss 2018, figure 2.7)."""
    from matplotlib.figure import Figure

    disc = pl.shapes.circle(radius=1.0)
    body = pl.GridBody(disc, 0.1)
    scene = pl.Scene(
        body,
        material=pl.Material(youngs_modulus=110.0, poisson_ratio=0.3, density=2.0),
        gravity=(5.0, -9.81),
        fixed=[pl.Fixed(pl.shapes.box(center=(0.0, 1.0), size=(1.2, 0.4)))],
    )
    u = pl.solve_static(scene)
    moving = MovingField(body)
    true = body.surface.positions(body.nodes + u)[body.surface.facets]
    titles = {
        "semi_lagrangian": "semi-Lagrangian",
        "shepard": "on the Shepard inverse",
        "forward": "direct forward",
    }
    figure = Figure(figsize=(9.6, 3.6), dpi=100, layout="constrained")
    for axes, (method, title) in zip(figure.subplots(1, 3), titles.items(), strict=True):
        field = moving.at(u, method=method)
        x, y = (
            field.origin[d] + field.spacing * np.arange(field.values.shape[d]) for d in range(2)
        )
        levels = 0.2 * np.arange(-5, 6)
        axes.contourf(x, y, field.values.T, levels, cmap="RdBu_r", extend="both", alpha=0.6)
        axes.contour(x, y, field.values.T, [0.0], colors="#14181c", linewidths=2.0)
        for a, b in true:
            axes.plot([a[0], b[0]], [a[1], b[1]], color="#ffd23f", lw=1.2, ls=(0, (2, 1)))
        # how far the zero level lies from the moved surface, in cells
        error = np.abs(field.redistanced().distance(true.mean(axis=1))) / field.spacing
        axes.set_title(f"{title}: off by {error.max():.2f} cells", fontsize=11)
        axes.set_aspect("equal")
        axes.set_axis_off()
    return save("advections", _drawn(figure))


def cut_cells() -> Path:
    """Partially filled cells: a torus seen along its axis, on a grid that does not fit it."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure

    ring = pl.shapes.difference(pl.shapes.circle(radius=1.35), pl.shapes.circle(radius=0.65))
    body = pl.GridBody(ring, 0.14)
    corner = body.nodes[body.cells[:, [0, 1, 3, 2]]]
    fill = body.fill
    figure = Figure(figsize=(4.8, 4.8), dpi=100)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    colours = np.where((fill > 1 - 1e-9)[:, None], [0.42, 0.58, 0.73, 1.0], [0.96, 0.6, 0.25, 1.0])
    colours[:, 3] = np.where(fill > 1 - 1e-9, 0.85, 0.15 + 0.75 * fill)
    axes.add_collection(
        PolyCollection(list(corner), facecolors=colours, edgecolors="#8892a0", linewidths=0.6)
    )
    surface = body.surface
    points = surface.positions(body.nodes)
    axes.add_collection(
        LineCollection(list(points[surface.facets]), colors="#14181c", linewidths=1.8)
    )
    axes.plot(*points.T, ".", color="#14181c", ms=3.5)
    axes.set_xlim(-1.55, 1.55)
    axes.set_ylim(-1.45, 1.65)  # room for the title
    axes.set_axis_off()
    flat = _drawn(figure)
    torus = pl.Scene(pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.14))
    studio = Studio(
        torus, [torus.body.nodes], width=560, height=480, style="slice",
        cut=Cut("z", at=0.0), directions={"azimuth": 0.5, "elevation": 0.35},
    )  # fmt: skip
    nodes = torus.body.nodes
    solid = studio._field.paint(0.0 * nodes, np.zeros(len(nodes)), studio.scale, 3)
    return save(
        "cut_cells",
        np.concatenate([titled(flat, "full and cut cells"), titled(solid, "distance inside")], 1),
    )


def torus_drop() -> Path:
    """The same torus drops on a slope, as cells of a grid and as tetrahedra."""
    rows = []
    for name, title in (("drop", "grid"), ("drop-mesh", "tetrahedra")):
        scene = load_builtin(name)
        run = pl.simulate(scene, 144)
        motion = [run.nodes(k) for k in range(len(run.times))]
        studio = Studio(scene, motion[::24], width=320, height=240)
        shots = [studio.picture(motion[k], time=run.times[k]) for k in (48, 88, 144)]
        shots[0] = titled(shots[0], f"{title}, {len(scene.body.cells)} cells")
        rows.append(np.concatenate(shots, axis=1))
    return save("torus_drop", np.concatenate(rows))


def compare() -> Path:
    """The bar under three models, as `pliant compare bar` leaves it."""
    from tempfile import TemporaryDirectory

    from pliant.app.folders.comparing import compare as compared
    from pliant.app.pictures.compare_pictures import draw_compared

    found = compared(load_builtin("bar"), ["position-based", "shape-matching"], 40)
    with TemporaryDirectory() as folder:
        draw_compared(found, Path(folder))
        return save("compare", Image.open(Path(folder) / "compare.png").convert("RGB"))


def three_renderings() -> Path:
    """One moment of the swinging torus: its triangles, a slice of its level set, its stress."""
    scene = load_builtin("torus")
    run = pl.simulate(scene, 18)
    nodes = run.nodes(18)
    looks = (
        ("marching cubes", {}),
        ("slice of the level set", {"style": "slice", "cut": Cut("z", at=0.35)}),
        ("ray-cast level set, stress", {"style": "field", "colour": "stress"}),
    )
    shots = []
    for title, look in looks:
        studio = Studio(scene, [scene.body.nodes, nodes], width=400, height=360, **look)
        shots.append(titled(studio.picture(nodes, time=run.times[18]), title))
    return save("three_renderings", np.concatenate(shots, axis=1))


def law_deformations() -> Path:
    """The box of benchmarks/law_deformations.py, coarser, coloured by the volume that is left."""
    sys.path.insert(0, str(IMAGES.parents[1] / "benchmarks"))
    from law_deformations import MOTIONS, body_of, deform, law_named
    from matplotlib import colormaps

    from pliant.app.render.mesh_painter import MeshPainter
    from pliant.app.render.stage import make_setting
    from pliant.fem.forces.stress import to_nodes
    from pliant.fem.laws import LAWS

    body = body_of(0.12)
    scene, surface = pl.Scene(body), body.surface
    rest = body.nodes[body.cells]
    full = np.linalg.det(rest[:, 1:] - rest[:, :1])
    columns, heights = [], (1.35, 0.75, 1.85, 1.1)  # of the rows [m]
    for name in LAWS:
        shots = []
        for motion in MOTIONS.values():
            nodes = body.nodes + deform(body, law_named(name), motion)[0]
            x = nodes[body.cells]
            left = to_nodes(body, np.linalg.det(x[:, 1:] - x[:, :1]) / full)
            frame = np.array([[-0.8, 0.0, -0.6], [0.6, heights[len(shots)], 0.6]])
            look = {"azimuth": 0.45, "elevation": 0.3}
            size = (176, round(100.0 * (frame[1, 1] + 0.55)))  # the same scale in all rows
            setting = make_setting(scene, [frame], *size, directions=look)
            setting.stage.fade = 1e-6  # no floor: the boxes stand in a table
            painter = MeshPainter(setting, len(surface.points), surface.facets)
            share = np.clip(0.5 + (surface.points.matrix @ left - 1.0) / 0.8, 0.0, 1.0)
            colours = colormaps["coolwarm"](share)[:, :3]
            shots.append(painter.paint(surface.positions(nodes), colours, 3))
        shots[0] = titled(shots[0], name)
        columns.append(np.concatenate(shots))
    half = (len(columns) + 1) // 2
    columns += [_volume_scale(columns[0].shape)] * (2 * half - len(columns))
    blocks = [np.concatenate(columns[k : k + half], axis=1) for k in (0, half)]
    return save("law_deformations", np.concatenate(blocks))


def _volume_scale(shape: tuple[int, ...]) -> np.ndarray:
    """An empty column with the colours of the volumes in it."""
    from matplotlib import colormaps

    column = np.full(shape, 250, np.uint8)
    ramp = colormaps["coolwarm"](np.linspace(1.0, 0.0, 200))[:, None, :3]
    column[60:260, 40:64] = (255.0 * ramp).astype(np.uint8)
    picture = Image.fromarray(column)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=13)
    pen.text((40, 30), "volume", fill=INK, font=font)
    for y, text in ((60, "140 %"), (160, "100 %"), (260, "60 %")):
        pen.text((74, y), text, fill=INK, font=font, anchor="lm")
    return np.asarray(picture)


def editor() -> Path:
    """The editor's page, taken by editor_picture.py."""
    from editor_picture import OUT, take

    take()
    return OUT


def fine_mesh() -> Path | None:
    """A dragon of 47,794 triangles carried by 10,216 cells; needs the folder PLIANT_DATA."""
    folder = os.environ.get("PLIANT_DATA")
    if not folder:
        return None
    scene = load_builtin("dragon")
    run = pl.simulate(scene, 10)
    mesh = load_render_mesh(scene.body, Path(folder) / "dragon_res3.ply", fit=True)
    nodes = run.nodes(10)
    shots = []
    for title, look in (("the surface of the cells", {}), ("a fine mesh", {"mesh": mesh})):
        studio = Studio(scene, [nodes], width=520, height=400, colour="displacement", **look)
        shots.append(titled(studio.picture(nodes, time=run.times[10]), title))
    return save("fine_mesh", np.concatenate(shots, axis=1))


def demo() -> Path | None:
    """The picture that `make demo` left in runs/demo, made small: dithered, without bands."""
    path = IMAGES.parents[1] / "runs" / "demo" / "demo.png"
    if not path.is_file():
        return None
    full = Image.open(path).convert("RGB")
    picture = full.resize((1120, round(1120 * full.height / full.width)), Image.Resampling.LANCZOS)
    w, h = picture.size
    # mostly the colours of the smooth surface at the right, where bands would show
    smooth = picture.crop((w // 2, h // 16, w, 2 * h // 3)).resize((w, 2 * h))
    both = np.concatenate([np.asarray(picture), np.asarray(smooth)])
    palette = Image.fromarray(both).quantize(256, kmeans=4)
    small = picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    return save("demo", small)


def _drawn(figure) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


PICTURES = {
    f.__name__: f
    for f in (
        advections,
        cut_cells,
        torus_drop,
        compare,
        three_renderings,
        law_deformations,
        fine_mesh,
        demo,
        editor,
    )
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        done = PICTURES[wanted]()
        sys.stdout.write(f"{done or wanted + ': skipped, needs PLIANT_DATA or runs/demo'}\n")
