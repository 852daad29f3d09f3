"""A person's way through the editor: load, fix, play, drag, pause, scrub, save, reopen, export."""

import os
import time

import numpy as np
import pytest
import trimesh
from pages import BLOCK, Page, alike, difference, done, hues, pixels, still, wait_for

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from waiting import gone, soon


@pytest.fixture(scope="module")
def editor(browser, tmp_path_factory):
    from pliant.app.editor import editor as module
    from pliant.app.editor.opening import Opened

    folder = tmp_path_factory.mktemp("served")
    before, module.LINGER = module.LINGER, 1.0
    opened = Opened("editor", "block.toml", build_scene(BLOCK), folder)
    made = module.Editor(opened, threads=1)
    made.start()
    made.desk.post(lambda: made.viewport.set_shadows(False))  # software draws them slowly
    yield made
    made.stop()
    module.LINGER = before


@pytest.fixture(scope="module")
def page(browser, editor):
    opened = Page(browser, editor.address)
    yield opened
    opened.close()
    assert not opened.errors


def test_opens_on_the_body_at_rest(page, editor):
    place = f"http://127.0.0.1:{editor.proxy.port}/{editor.proxy.gate.place}/"
    assert page.page.url.partition("?")[0] == place
    assert "token" not in page.page.url
    assert (page.time(), page.tip()) == (0.0, 0.0)
    assert "box, 1 x 0.4 x 0.4 m" in page.text()
    wait_for(editor.processes)  # the simulation is warmed up
    still(page)  # faded in


def test_mesh_panel_counts_before_it_builds(page, editor):
    page.tab("Mesh")
    wait_for(lambda: "20 cells" in page.text())
    page.fill("Spacing [m]", "0.1")
    wait_for(lambda: "Will have 160 cells" in page.text())
    assert len(editor.session.body.cells) == 20
    page.press("Build")
    done(editor, lambda: len(editor.session.body.cells) == 160)
    wait_for(lambda: "Built: 160 cells" in page.text())


def test_boundary_fixes_a_region(page, editor):
    page.tab("Boundary")
    wait_for(lambda: "0 of" in page.text())
    page.press("Add box")
    done(editor, lambda: editor.session.scene.fixed)
    wait_for(lambda: "25 of" not in page.text() and "surface points are held" in page.text())
    held = editor.session.scene.fixed[0].region
    assert held.contains(np.array([[0.0, 0.0, 0.0]])).all()
    assert not held.contains(np.array([[1.0, 0.0, 0.0]])).any()


def test_preset_changes_the_material(page, editor):
    page.tab("Material")
    page.choose("Preset", "Silicone 00-30")
    done(editor, lambda: editor.session.scene.material.youngs_modulus == 6.9e4)
    wait_for(lambda: "Smooth-On" in page.text())
    page.fill("Young's modulus [Pa]", "300")
    page.fill("Density [kg/m³]", "1")
    page.fill("Mass damping [1/s]", "0.5")
    page.fill("Stiffness damping [s]", "0.02")
    done(editor, lambda: editor.session.scene.material.stiffness_damping == 0.02)
    assert editor.session.scene.material.youngs_modulus == 300.0


def test_gravity_plays_and_the_surface_moves(page, editor):
    page.tab("Load")
    before = page.picture()
    page.press("Earth")
    done(editor, lambda: editor.session.scene.gravity[1] == -9.81)
    tips = [0.0]
    for k in range(1, 4):
        page.press("Step")
        wait_for(lambda k=k: page.time() == pytest.approx(0.02 * k))
        tips.append(page.tip())
    assert (np.diff(tips) > 0.0).all()  # it begins to fall
    page.press("Play")
    wait_for(lambda: page.tip() > 0.1)
    wait_for(lambda: "playing" in page.text())
    wait_for(lambda: difference(before, page.picture()) > 0.01)


def test_drag_while_it_runs(page, editor):
    if not editor.simulation.running:
        page.press("Play")
    wait_for(lambda: editor.simulation.running and page.time() > 1.5)  # it has come to rest, nearly
    heights = _height(editor)
    mouse = page.page.mouse

    def lifted() -> bool:  # a picture drawn late may show the end elsewhere: take hold again
        mouse.up()
        x, y = _tip_on_screen(page, editor)
        mouse.move(x, y)
        mouse.down()
        for k in range(1, 12):
            mouse.move(x, y - 12 * k)
            time.sleep(0.1)
        return soon(lambda: _height(editor) > heights + 0.05, 15.0)

    wait_for(lifted)  # pulled up, against its weight
    mouse.up()
    wait_for(lambda: _height(editor) < heights + 0.03)  # let go, it falls back


def _height(editor, frame: int = -1) -> float:
    """Of the bar's end."""
    frame = editor.session.history[frame]
    points = editor.session.body.surface.points
    return float(points.at(frame.u)[editor.session.tip(), 1])


def _tip_on_screen(page, editor) -> tuple[float, float]:
    """Where the end of the bar is drawn."""
    body = editor.session.body
    near_end = body.nodes[:, 0] > 0.75
    return page.point(editor, (body.nodes + editor.session.history[-1].u)[near_end].mean(axis=0))


def test_pause_and_scrub(page, editor):
    """A frame of the past with another height is another picture; the last one comes back."""
    page.press("Pause")
    wait_for(lambda: "paused" in page.text())
    end = page.time()
    time.sleep(0.3)
    assert page.time() == end
    later = still(page)
    last = len(editor.session.history) - 1
    heights = [_height(editor, frame) for frame in range(last + 1)]
    other = int(np.argmax(np.abs(np.array(heights) - heights[last])))
    page.scrub(other)
    wait_for(lambda: page.time() == pytest.approx(editor.session.history[other].t, abs=1e-3))
    assert page.time() < end
    wait_for(lambda: difference(later, page.picture()) > 0.005)
    page.scrub(last)
    wait_for(lambda: page.time() == end)
    wait_for(lambda: alike(later, page.picture()))


def test_keys_play_pause_step_and_undo(page, editor):
    """The panel does not move when a message comes or goes."""
    keyboard = page.page.keyboard
    page.page.evaluate("() => document.activeElement && document.activeElement.blur()")
    editor.desk.post(lambda: editor.timeline.say(""))
    tab = page.page.get_by_role("tab", name="Files", exact=True)
    place = tab.bounding_box()["y"]
    editor.desk.post(lambda: editor.timeline.say("A long sentence " * 12))
    wait_for(lambda: "A long sentence" in page.text())
    assert tab.bounding_box()["y"] == place
    at = int(editor.timeline.frame.value)
    keyboard.press("ArrowLeft")
    wait_for(lambda: int(editor.timeline.frame.value) == at - 1)
    gravity = editor.session.scene.gravity
    keyboard.press("Control+z")
    wait_for(lambda: editor.session.scene.gravity != gravity)
    keyboard.press("Control+Shift+z")
    wait_for(lambda: editor.session.scene.gravity == gravity)
    keyboard.press("Space")
    wait_for(lambda: editor.simulation.running and "playing" in page.text())
    keyboard.press("Space")
    wait_for(lambda: not editor.simulation.running and "paused" in page.text())


def test_step_and_reset(page, editor):
    page.press("Reset")
    wait_for(lambda: page.time() == 0.0)
    for k in (1, 2):
        page.press("Step")
        wait_for(lambda k=k: page.time() == pytest.approx(0.02 * k))
    page.press("Reset")
    wait_for(lambda: page.time() == 0.0)


def test_view_by_stress_slice_and_cells(page, editor):
    """Each choice changes the picture, and the last one brings the first picture back."""
    page.press("Reset")
    wait_for(lambda: page.time() == 0.0)
    page.press("Step")
    page.press("Step")
    wait_for(lambda: page.time() == pytest.approx(0.04))
    page.tab("View")
    plain = still(page)
    page.choose("Colour", "von Mises stress")
    wait_for(lambda: hues(page.picture()) > hues(plain) + 5)  # a range of colours instead of one
    coloured = still(page)
    page.choose("Slice across", "z")
    wait_for(lambda: difference(coloured, page.picture()) > 0.01)
    sliced = still(page)
    page.tick("Cells")
    wait_for(lambda: difference(sliced, page.picture()) > 0.004)  # thin lines
    page.choose("Slice across", "off")
    page.choose("Colour", "displacement")
    wait_for(lambda: " m" in page.text() and difference(coloured, page.picture()) > 0.01)
    page.choose("Colour", "plain")
    page.tick("Cells")
    wait_for(lambda: alike(plain, page.picture()))


def test_dark_theme_and_back(page, editor):
    """The corner of the view, where nothing is drawn, and the panel turn dark; the body stays."""

    def shades():
        whole = pixels(page.page.screenshot()).mean(axis=2)
        return float(whole[4:10, 4:10].mean()), float(np.median(whole[-40:, -60:]))

    page.tab("View")
    assert min(shades()) > 200
    light = still(page)
    page.tick("Dark theme")
    wait_for(lambda: max(shades()) < 60)
    wait_for(lambda: difference(light, page.picture()) > 0.3)
    warm = pixels(page.picture())
    assert ((warm[..., 0] > 150) & (warm[..., 0] > warm[..., 2] + 40)).mean() > 0.02
    page.tick("Dark theme")
    wait_for(lambda: alike(light, page.picture()))


def test_pressure_and_traction_on_a_picked_region(page, editor):
    """Without weight a pressure on the upper side pushes it down, as the statics say."""
    page.press("Reset")
    page.tab("Load")
    page.press("None")
    done(editor, lambda: editor.session.scene.gravity[1] == 0.0)
    page.press("Pressure")
    done(editor, lambda: len(editor.session.scene.loads) == 1)
    page.press("Pick on the body")
    wait_for(lambda: editor.load.picking)
    place = np.array([0.7, 0.2, 0.1])  # on the upper side

    def picked():  # the page may not listen yet
        page.page.mouse.click(*page.point(editor, place))
        return soon(lambda: not editor.load.picking, 3.0)

    done(editor, picked)
    center = editor.session.scene.loads[0].region.center
    assert np.linalg.norm(center - place) < 0.1  # the surface point that is nearest to it
    page.fill("Pressure [Pa]", "4")
    done(editor, lambda: editor.session.scene.loads[0].pressure == 4.0)
    wait_for(lambda: "surface points" in page.text())
    for k in (1, 2, 3):
        page.press("Step")
        wait_for(lambda k=k: page.time() == pytest.approx(0.02 * k))
    assert _height(editor) < 0.0  # pushed inward, so down
    page.press("Reset")
    page.press("Remove this load")
    done(editor, lambda: not editor.session.scene.loads)
    page.press("Traction")
    done(editor, lambda: editor.session.scene.loads)
    force = np.array(editor.session.scene.loads[0].force)
    assert force[1] < 0.0
    for k in (1, 2, 3):
        page.press("Step")
        wait_for(lambda k=k: page.time() == pytest.approx(0.02 * k))
    assert _height(editor) < 0.0
    page.press("Remove this load")
    page.press("Earth")
    done(editor, lambda: not editor.session.scene.loads and editor.session.scene.gravity[1] < 0.0)
    page.press("Reset")
    wait_for(lambda: page.time() == 0.0)


@pytest.mark.slow
def test_two_pages_show_the_same(browser, page, editor):
    second = Page(browser, editor.address, width=560, height=360)
    try:
        wait_for(lambda: len(editor.server.get_clients()) == 2)
        second.press("Play")  # one page starts it, both see it
        wait_for(lambda: page.tip() > 0.01)
        page.press("Pause")
        wait_for(lambda: "paused" in second.text())
        wait_for(lambda: second.tip() == page.tip() > 0.0)
    finally:
        second.close()
    wait_for(lambda: len(editor.server.get_clients()) == 1)
    time.sleep(1.2)
    assert editor.processes()  # the other page is still there


def test_save_reopen_and_export(page, editor):
    page.tab("Files")
    page.write("mine.toml")
    page.press("Save")
    path = editor.session.folder / "mine.toml"
    wait_for(path.is_file)
    assert pl.load_scene(path).material.youngs_modulus == 300.0
    page.choose("Format", "surface, OBJ")
    page.press("Export")
    (made,) = wait_for(lambda: list(editor.session.folder.glob("[a-z]*.obj")))
    mesh = trimesh.load(made)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(0.16, rel=0.1)
    with page.page.expect_download() as download:
        page.page.get_by_role("link", name=made.name).click()
    assert download.value.path().read_bytes() == made.read_bytes()
    for _ in range(2):  # frames of a motion, whatever was pressed before
        before = len(editor.session.history)
        page.press("Step")
        wait_for(lambda before=before: len(editor.session.history) > before)
    page.choose("Format", "all frames, glTF (Blender, browsers)")
    page.press("Export")
    (made,) = wait_for(lambda: list(editor.session.folder.glob("[a-z]*.glb")))
    with page.page.expect_download() as download:
        page.page.get_by_role("link", name=made.name).click()
    data = download.value.path().read_bytes()
    assert data[:4] == b"glTF"
    assert data == made.read_bytes()
    page.choose("Scene", "built in: drop")
    page.press("Open")
    done(editor, lambda: editor.session.name == "drop")
    page.choose("Scene", "mine.toml")
    page.press("Open")
    done(editor, lambda: editor.session.name == "mine.toml")
    wait_for(lambda: "mine.toml is open." in page.text())  # its name stands in the text field
    assert len(editor.session.body.cells) == 160
    assert len(editor.session.scene.fixed) == 1


def test_names_that_leave_the_folder_are_refused(page, editor):
    page.write("../evil.toml")
    page.press("Save")
    wait_for(lambda: "a file name here has" in page.text())
    assert not (editor.session.folder.parent / "evil.toml").exists()


def test_screenshot(page, editor):
    from PIL import Image

    page.press("Screenshot")
    (made,) = wait_for(lambda: list(editor.session.folder.glob("screenshot_*.png")))
    picture = np.asarray(Image.open(made))
    assert picture.shape == (960, 1280, 3)
    assert (picture.reshape(-1, 3).std(axis=0) > 5.0).all()  # not one colour


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_hostile_uploads_are_refused(page, editor, tmp_path):
    """Too large, of another type, and with a pickle inside: told in the page, nothing is kept."""
    before = sorted(p.name for p in editor.session.folder.iterdir())
    shape = editor.session.description["shape"]
    page.tab("Shape")
    large = tmp_path / "large.stl"
    with large.open("wb") as stream:
        stream.truncate(64 * 1024**2 + 1)
    page.upload(large)
    wait_for(lambda: "large.stl: larger than 64 MB" in page.text())
    program = tmp_path / "shape.py"
    program.write_text("print('no shape')")
    page.upload(program)
    wait_for(lambda: "shape.py: its ending must be one of" in page.text())
    mark = tmp_path / "unpickled"
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, values=np.array([Touch(mark)], object), spacing=0.1)
    page.upload(pickled)
    wait_for(lambda: "pickled, which is never loaded" in page.text())
    assert not mark.exists()
    assert sorted(p.name for p in editor.session.folder.iterdir()) == before
    assert editor.session.description["shape"] == shape


def test_upload_of_a_mesh(page, editor, tmp_path):
    file = tmp_path / "ball.ply"
    trimesh.creation.icosphere(subdivisions=3, radius=0.5).export(file)
    page.tab("Shape")
    page.upload(file)
    done(editor, lambda: "ball.ply" in str(editor.session.description["shape"]))
    assert (editor.session.folder / "ball.ply").is_file()
    wait_for(lambda: "ball.ply, " in page.text())
    assert editor.session.body.volume == pytest.approx(np.pi / 6.0, rel=0.02)
    assert 2000 < len(editor.session.body.cells) < 4500


def test_mesh_panel_builds_tetrahedra(page, editor):
    page.tab("Files")
    page.choose("Scene", "mine.toml")
    page.press("Open")
    done(editor, lambda: editor.session.name == "mine.toml")
    page.tab("Mesh")
    page.choose("Cells", "Tetrahedra")
    page.fill("Spacing [m]", "0.2")
    wait_for(lambda: "Will have about" in page.text())
    page.press("Build")
    done(editor, lambda: not editor.session.body.is_grid)
    wait_for(lambda: "Built:" in page.text())
    assert editor.session.body.cells.shape[1] == 10
    assert editor.session.body.volume == pytest.approx(0.16, rel=1e-3)
    page.press("Step")
    wait_for(lambda: page.time() == pytest.approx(0.02))
    assert page.tip() > 0.0


def test_diverging_run_is_told_in_the_page(page, editor):
    page.tab("Files")
    page.choose("Scene", "mine.toml")
    page.press("Open")
    done(editor, lambda: len(editor.session.body.cells) == 160)
    page.tab("Solver")
    page.choose("Integrator", "CentralDifferences")
    page.fill("Time step [s]", "0.2")
    done(editor, lambda: editor.session.scene.dt == 0.2)
    page.press("Play")
    wait_for(lambda: "smaller time step" in page.text())
    wait_for(lambda: "(at rest)" in page.text())  # it was refused before its first step


@pytest.mark.slow
def test_closing_the_page_in_mid_run_leaves_nothing(browser, page, editor):
    page.choose("Integrator", "ImplicitEuler")
    page.fill("Time step [s]", "0.02")
    done(editor, lambda: editor.session.scene.dt == 0.02)
    page.press("Reset")
    wait_for(lambda: page.time() == 0.0 and len(editor.session.history) == 0)
    page.press("Play")
    wait_for(lambda: page.time() > 0.1)
    (pid,) = editor.processes()
    page.page.close(run_before_unload=False)
    wait_for(lambda: not editor.server.get_clients())
    wait_for(lambda: not editor.processes())
    assert gone(pid)
    at = editor.session.history[-1].t
    again = Page(browser, editor.address)
    wait_for(lambda: again.time() == pytest.approx(at, abs=1e-3))  # nothing is lost
    again.press("Play")
    wait_for(lambda: again.time() > at + 0.05)
    again.close()
