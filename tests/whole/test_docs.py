"""Pages refer to what exists, pictures are small, and every public name is in the reference."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pliant as pl
from pliant.app.describing import scene_model
from pliant.app.describing.scenes import scene_names, scene_summary
from pliant.app.terminal.command_table import COMMANDS, load
from pliant.geometry.describe import shape_types

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))
]  # fmt: skip
GENERATED = {"index.md", "reference.md", "contributing.md"}
SEED = re.compile(r"seed \d{3}", flags=re.I)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://|#|mailto:", target):
            continue
        name = target.split("#")[0]
        assert name in GENERATED or (page.parent / name).exists(), f"{page.name}: {target}"


def test_tests_lie_in_the_folders_of_the_source():
    """So that one layer's can be run alone; what is about the package lies in tests/whole."""
    layers = {path.name for path in (ROOT / "src" / "pliant").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders <= layers | {"whole", "editor", "browser"}
    assert layers - {"__pycache__"} <= folders


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size <= 250_000, picture.name


def test_scene_files_are_described_in_full():
    text = (ROOT / "docs" / "scenes.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`\"?([\w-]+)\"?`", text))
    tables = [t for t in vars(scene_model).values() if isinstance(t, type)]
    for table in (t for t in tables if issubclass(t, scene_model.Table)):
        assert set(table.model_fields) <= words | {
            "type",
            "shape",
            "body",
            "material",
            "fixed",
            "loads",
            "obstacles",
            "contact",
            "integrator",
        }
    assert set(shape_types()) <= words


def test_the_reference_has_every_public_name():
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "site_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    text = pages.reference()
    for name in set(pl.__all__) - set(pages.MODULES):
        assert f"::: pliant.{name}\n" in text
    assert "::: pliant.geometry.primitives.torus" in text


def test_the_bibliography_resolves_what_the_code_cites():
    text = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (seed \d{3}) \| .*?\*\*(.+?)\*\*", text, flags=re.M))
    assert sorted(rows) == [f"seed 00{k}" for k in range(5)]
    folders = ("src", "tests", "docs", "benchmarks", "examples")
    files = [p for f in folders for p in (ROOT / f).rglob("*.py")]
    cited = {s.lower() for p in files for s in SEED.findall(p.read_text(encoding="utf-8"))}
    assert cited <= set(rows)


def test_users_read_authors_instead_of_numbers():
    """Pages, the list of scenes and the help of commands."""
    for page in PAGES:
        if page.name != "bibliography.md":
            assert not SEED.search(page.read_text(encoding="utf-8")), page.name
    told = [scene_summary(name) for name in scene_names()]
    told += [option.help or "" for c in COMMANDS for option in load(c).params]
    told += [load(c).help or "" for c in COMMANDS]
    assert len(told) > 100
    assert not SEED.search(" ".join(told))


def test_the_site_builds(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    for name in set(pl.__all__) - {"laws", "shapes"}:
        assert f'id="pliant.{name}"' in reference
    assert 'href="bibliography.html#seed-000">Weiss 2018</a>' in reference
    for page in tmp_path.glob("*.html"):
        assert page.name == "bibliography.html" or not SEED.search(page.read_text("utf-8")), page
