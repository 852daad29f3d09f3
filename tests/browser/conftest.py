"""A headless Chromium and an editor; without Chromium these tests are skipped, loudly."""

import os
import shutil
import warnings

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --use-gl=angle "
    "--use-angle=swiftshader --enable-unsafe-swiftshader --mute-audio"
).split()

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

MISSING = (
    "BROWSER TESTS SKIPPED: no Chromium was found. `make browser` installs Debian's where it can; "
    "elsewhere set PLIANT_CHROMIUM to a Chromium or Chrome."
)


def chromium_path() -> str | None:
    given = os.environ.get("PLIANT_CHROMIUM")
    return given or next((p for p in map(shutil.which, NAMES) if p), None)


@pytest.fixture(scope="module")  # an idle page still draws, at a third of a core
def browser():
    path = chromium_path()
    if path is None:
        warnings.warn(MISSING, stacklevel=1)
        pytest.skip(MISSING)
    pytest.importorskip("viser", reason="BROWSER TESTS SKIPPED: pip install 'pliant[view]'")
    playwright = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS SKIPPED")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=path, args=FLAGS, headless=True)
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """opened(target): its editor and a page of it; closed at the end, with nothing left running."""
    from pages import Page

    from pliant.app.editor.editor import Editor

    made = []

    def make(target):
        editor = Editor(target, threads=1)
        made.append(editor)
        editor.start()
        editor.desk.post(lambda: editor.viewport.set_shadows(False))  # software draws them slowly
        page = Page(browser, editor.address)
        made.append(page)
        return editor, page

    yield make
    for thing in reversed(made):
        if isinstance(thing, Editor):
            thing.stop()
            assert not thing.processes()
        else:
            thing.close()
            assert not thing.errors
