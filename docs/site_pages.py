"""mkdocs hook: the first page is the README, the reference has every public name.

What docstrings call seed 000 to 004 is called by its authors on the site, with a link.
"""

import ast
import re
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

GROUPS = {
    "Bodies and materials": ("GridBody", "TetBody", "Body", "Material", "MaterialRegion",
                             "load_shape", "energy"),
    "Scenes": ("Scene", "Fixed", "Motion", "Traction", "Pressure", "PointLoad", "BodyForce",
               "Plane", "Obstacle", "ContactLaw", "load_scene"),
    "Integrators": ("Newmark1", "Newmark2", "Newmark3", "CentralDifferences",
                    "LinearAcceleration", "HHT", "ImplicitEuler"),
    "Models of your own": ("SmallWorld", "world"),
    "Running": ("simulate", "solve_static", "modes", "Trajectory", "Modes"),
    "Observing": ("observe", "ring_of_cameras", "Camera", "Observations",
                  "load_observations", "save_observations"),
    "Reconstruction": ("reconstruct", "Fit", "NodeMotions", "LevelSets", "Prior", "FieldPenalty"),
    "Machine": ("set_device", "set_threads"),
    "Errors": ("PliantError", "BadInput", "SolverFailure", "SimulationStopped", "MissingExtra"),
}  # fmt: skip
"""Sections of the reference; names that no section has come last."""

MODULES = ("shapes", "laws")
"""Public names that are modules: their own public names are listed."""


FURTHER = {
    "Modal derivatives and frequency design": (
        "dynamics.modal_derivatives.modal_derivatives",
        "dynamics.modal_derivatives.ModalDerivatives",
        "dynamics.frequency_design.design_arch", "dynamics.frequency_design.Arch",
        "dynamics.frequency_design.Design",
    ),
    "Models from the ground up": (
        "dynamics.model.World", "dynamics.model.Model", "dynamics.model.State",
        "dynamics.model.Block", "dynamics.model.Carrier", "dynamics.model.Derivatives",
        "dynamics.small_model.SmallModel", "dynamics.worlds.register_world",
    ),
    "Comparing laws": (
        "inverse.fitting.model_choice.compare_laws", "inverse.fitting.model_choice.Candidate",
    ),
    "Moving surfaces": (
        "fem.forces.moving_field.MovingField", "fem.bodies.render_mesh.carried_mesh",
        "fem.bodies.render_mesh.RenderMesh",
    ),
}  # fmt: skip
"""What has no short name in `pl`."""


def public_names(package: str = "") -> list[str]:
    """What `__all__` of pliant or a package in it says, read without importing it."""
    path = ROOT / "src" / "pliant" / package / "__init__.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    raise SystemExit(f"{path} has no __all__")


def reference() -> str:
    """The reference as Markdown with mkdocstrings' directives."""
    names = set(public_names())
    placed = {n for group in GROUPS.values() for n in group}
    groups = {title: [n for n in group if n in names] for title, group in GROUPS.items()}
    groups["More"] = sorted(names - placed - set(MODULES))
    lines = ["# Reference", "", "All names of `import pliant as pl`.", ""]
    for title, group in groups.items():
        if group:
            lines += [f"## {title}", ""]
            lines += [line for n in group for line in (f"::: pliant.{n}", "")]
    lines += ["## Shapes", "", "Names of `pl.shapes`.", ""]
    for module, name in _shape_names():
        lines += [f"::: {module}.{name}", ""]
    for title, package in (("Laws", "fem/laws"), ("Complex steps", "complexstep")):
        called = "pl.laws" if title == "Laws" else "pliant.complexstep"
        lines += [f"## {title}", "", f"Names of `{called}`.", ""]
        for name in public_names(package):
            lines += [f"::: pliant.{package.replace('/', '.')}.{name}", ""]
    for title, names in FURTHER.items():
        lines += [f"## {title}", "", *(line for n in names for line in (f"::: pliant.{n}", ""))]
    return "\n".join(lines)


def _shape_names() -> list[tuple[str, str]]:
    """(module, name) of what `pliant.geometry.shapes` offers, in its order."""
    tree = ast.parse((ROOT / "src/pliant/geometry/shapes.py").read_text(encoding="utf-8"))
    found = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
    return found


def index() -> str:
    """The README with its links as seen from docs/."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for file in ("conventions", "architecture", "derivatives"):
        text = text.replace(f"`docs/{file}.md`", f"[{file}]({file}.md)")
    text = re.sub(r"\[results\]\((benchmarks/\w+\.md)\)", r"`\1`", text)  # outside the site
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md)", "](contributing.md)")


def contributing() -> str:
    """CONTRIBUTING.md with its links as seen from docs/."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.replace("](docs/", "](")


def documents() -> dict[str, str]:
    """What docs/bibliography.md calls the documents, by their names in the code."""
    text = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (seed \d{3}) \| .*?\*\*(.+?)\*\*", text, flags=re.M))


def on_page_content(html: str, *, page, config, files) -> str:
    """The documents by their authors instead of their numbers."""
    if page.file.src_uri == "bibliography.md":
        return html
    for seed, authors in documents().items():
        link = f'<a href="bibliography.html#{seed.replace(" ", "-")}">{authors}</a>'
        html = re.sub(seed, link, html, flags=re.I)
    return html


def on_config(config):
    """Pages that the navigation forgot come last in its section 'Inside'."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    missing = sorted(p.name for p in (ROOT / "docs").glob("*.md") if f" {p.name}" not in text)
    for section in config["nav"]:
        if "Inside" in section:
            section["Inside"] += missing
    return config


def on_files(files: Files, *, config) -> Files:
    """Add the generated pages."""
    pages = {"index.md": index(), "contributing.md": contributing(), "reference.md": reference()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files
