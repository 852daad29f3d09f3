"""The box that chooses what is held, dragged with the mouse."""

import numpy as np
import pytest
from pages import BLOCK, done, still, wait_for

from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.opening import Opened


@pytest.mark.slow  # software draws the drag too slowly for every run
def test_region_is_dragged_by_its_arrow(opened, tmp_path):
    """The held region follows the mouse along the arrow, and so does what is held."""
    editor, page = opened(Opened("editor", "block.toml", build_scene(BLOCK), tmp_path))
    page.tab("Boundary")
    page.press("Add box")
    done(editor, lambda: editor.session.scene.fixed)
    still(page)
    before = np.array(editor.session.scene.fixed[0].region.center)
    along = np.array([1.0, 0.0, 0.0])
    arrow = before + 0.25 * along  # its shaft is a third of the body long, and inside it
    mouse = page.page.mouse
    mouse.move(*page.point(editor, arrow))
    page.draw()
    mouse.down()
    for k in range(1, 7):
        mouse.move(*page.point(editor, arrow + 0.05 * k * along))
        page.draw()
    mouse.up()
    wait_for(lambda: editor.session.scene.fixed[0].region.center[0] > before[0] + 0.15)
    held = editor.session.scene.fixed[0].region
    np.testing.assert_allclose(np.array(held.center) - before, 0.3 * along, atol=0.08)
    assert not held.contains(before[None] - [[0.05, 0.0, 0.0]]).any()
