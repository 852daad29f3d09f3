"""docs/images/editor.png: the editor with a swinging torus coloured by stress.

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

OUT = Path(__file__).parent / "images" / "editor.png"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --use-gl=angle "
    "--use-angle=swiftshader --enable-unsafe-swiftshader"
).split()
FRAMES = 60
LARGEST = 248_000
"""Bytes beyond which the last bits of the colours are dropped."""


def take(out: Path = OUT) -> None:
    """Open the editor, play to the end of the swing, colour by stress, save the picture."""
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
            page.screenshot(path=str(out))
            browser.close()
    finally:
        editor.stop()
    pixels = np.asarray(Image.open(out).convert("RGB"))
    for bits in range(4):  # coarser levels, until it is small enough: a palette would speckle
        half = (1 << bits) >> 1
        Image.fromarray((pixels >> bits << bits) + np.uint8(half)).save(out, optimize=True)
        if out.stat().st_size <= LARGEST:
            break


if __name__ == "__main__":
    take()
