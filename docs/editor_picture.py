"""docs/images/editor.png, a swinging torus coloured by stress, and panel_NAME.png for each panel.

Needs the extras `view` and `test` and a Chromium: python docs/editor_picture.py
"""

import os
import shutil
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from pliant.app.editor.editor import Editor
from pliant.app.editor.opening import open_target

OUT = Path(__file__).parent / "images"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --use-gl=angle "
    "--use-angle=swiftshader --enable-unsafe-swiftshader"
).split()
PANELS = ("Shape", "Mesh", "Material", "Boundary", "Load", "Solver", "View", "Reconstruct", "Files")
TABS, WIDTH = 148, 382
"""Pixels above the tabs, and across the panels."""

FRAMES = 60
LARGEST = 248_000
"""Bytes beyond which the last bits of the colours are dropped."""


def take(out: Path = OUT) -> None:
    """Open the editor, play to the end of the swing, colour by stress, save the pictures."""
    chromium = os.environ.get("PLIANT_CHROMIUM") or shutil.which("chromium")
    editor = Editor(open_target("torus"))
    editor.start()
    try:
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
            page = browser.new_page(viewport={"width": 1200, "height": 760})
            page.set_default_timeout(180_000)  # software draws slowly
            page.goto(editor.address)
            page.get_by_role("button", name="Play", exact=True).wait_for()
            page.get_by_role("tab", name="View", exact=True).click()
            page.get_by_role("combobox", name="Colour", exact=True).click()
            page.get_by_role("option", name="von Mises stress", exact=True).click()
            for _ in range(FRAMES):
                editor.desk.post(editor.simulation.step)
            while len(editor.session.history) < FRAMES:
                time.sleep(0.1)
            page.locator("[role=alert] button").first.click(force=True)  # software drawing
            time.sleep(6.0)
            page.screenshot(path=str(out / "editor.png"))
            page.set_viewport_size({"width": 900, "height": 1100})  # room for the longest panel
            for name in PANELS:
                page.get_by_role("tab", name=name, exact=True).click(force=True)
                time.sleep(3.0)
                page.screenshot(path=str(out / f"panel_{name.lower()}.png"))
            browser.close()
    finally:
        editor.stop()
    shrink(out / "editor.png")
    for name in PANELS:
        crop(out / f"panel_{name.lower()}.png")


def crop(file: Path) -> None:
    """To the panel's own fields: from the tabs down to the last of them."""
    pixels = np.asarray(Image.open(file).convert("RGB"))[TABS:, -WIDTH:]
    last = np.flatnonzero((pixels[:, 10:-10] < 200).any(axis=(1, 2)))[-1]
    Image.fromarray(pixels[: last + 12]).save(file, optimize=True)


def shrink(file: Path) -> None:
    """Coarser colours, until the file is small enough; a palette would speckle."""
    pixels = np.asarray(Image.open(file).convert("RGB"))
    for bits in range(4):
        half = (1 << bits) >> 1
        Image.fromarray((pixels >> bits << bits) + np.uint8(half)).save(file, optimize=True)
        if file.stat().st_size <= LARGEST:
            break


if __name__ == "__main__":
    take()
