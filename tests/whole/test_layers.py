"""Imports go down the layers only (design.md, 'Layers')."""

import ast
from pathlib import Path

import pliant

ROOT = Path(pliant.__file__).parent
RANK = {
    layer: rank
    for rank, row in enumerate(
        [("core",), ("complexstep",), ("geometry",), ("levelset",), ("linalg",), ("fem",),
         ("dynamics",), ("reduced", "particles"), ("observe",), ("inverse",), ("app",)]
    )
    for layer in row
}  # fmt: skip

ALLOWED = {
    (f"dynamics/{file}", "pliant.app.describing.scene_files")
    for file in ("scene.py", "parts/parts_scene.py")
}
"""Scene.save, of one body and of several: the contract puts it on Scene, the file
format belongs to the app."""


def imports(source: str, package: str) -> list[tuple[str, bool]]:
    """Modules of pliant that a source file names, with True for imports inside a function."""
    found = []

    def visit(node, inside):
        if isinstance(node, ast.Import):
            found.extend((alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[: len(parents) - node.level + 1])
                module = f"{base}.{module}".rstrip(".")
            if module == "pliant":  # `from pliant import fem` names the layer in its alias
                found.extend((f"pliant.{alias.name}", inside) for alias in node.names)
            else:
                found.append((module, inside))
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside or function)

    visit(ast.parse(source), False)
    return [(m, inside) for m, inside in found if m == "pliant" or m.startswith("pliant.")]


def upward(source: str, place: str) -> list[tuple[str, bool]]:
    """Imports of a file (place relative to the package) that do not go down."""
    layer = place.split("/")[0]
    package = ".".join(["pliant", *place.split("/")[:-1]])
    wrong = []
    for module, inside in imports(source, package):
        target = module.split(".")[1] if "." in module else ""
        if layer == "app" and target not in RANK:
            continue  # the app may use the public names
        if target != layer and (target not in RANK or RANK[target] >= RANK[layer]):
            wrong.append((module, inside))
    return wrong


def sources():
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if "/" in place:  # pliant/__init__.py and __main__.py stand above all layers
            yield place, path.read_text()


def test_every_folder_is_a_layer():
    folders = {place.split("/")[0] for place, _ in sources()}
    assert folders <= set(RANK)
    assert {"core", "geometry", "fem", "linalg", "dynamics", "app"} <= folders


def test_imports_go_down_only():
    exceptions = set()
    for place, text in sources():
        for module, inside in upward(text, place):
            assert inside, f"{place} imports {module} when it is loaded"
            assert (place, module) in ALLOWED, f"{place} imports {module}"
            exceptions.add((place, module))
    assert exceptions == ALLOWED


def test_upward_imports_are_seen():
    assert upward("from pliant.fem.bodies.body import Body", "core/x.py")
    assert upward("def f():\n    import pliant.app.cli", "dynamics/x.py") == [
        ("pliant.app.cli", True)
    ]
    assert upward("from pliant import observe", "fem/x.py")
    assert upward("from ..fem import body", "linalg/x.py")
    assert upward("from pliant.particles import pbd", "reduced/x.py")
    assert upward("import pliant as pl", "inverse/x.py")
    assert not upward("from pliant.core.errors import BadInput", "geometry/x.py")
    assert not upward("from . import body", "fem/x.py")
