"""Pages refer to what exists, pictures are small, and every public name is in the reference."""

import importlib.util
import re
from pathlib import Path

import pytest

import pliant as pl
from pliant.app import scene_model
from pliant.geometry.describe import shape_types

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = {"index.md", "reference.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://|#|mailto:", target):
            continue
        name = target.split("#")[0]
        assert name in GENERATED or (page.parent / name).exists(), f"{page.name}: {target}"


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size <= 250_000, picture.name


def test_scene_files_are_described_in_full():
    text = (ROOT / "docs" / "scenes.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`\"?([\w-]+)\"?`", text))
    tables = [t for t in vars(scene_model).values() if isinstance(t, type)]
    for table in (t for t in tables if issubclass(t, scene_model.Table)):
        assert set(table.model_fields) <= words | {"type", "shape", "body", "material", "fixed",
                                                   "loads", "obstacles", "contact", "integrator"}
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
