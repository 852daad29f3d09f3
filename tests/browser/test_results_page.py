"""Finished runs and fits in a page: a player, and what was seen over what was found."""

import numpy as np
import pytest
from pages import difference, pixels, still, wait_for

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.opening import open_target
from pliant.app.fitted.fit_directory import SEEN, FitDirectory
from pliant.app.folders.films import Film
from pliant.app.folders.runs import RunDirectory, describe, run_scene
from pliant.observe.files import save_observations

BAR = {
    "title": "bar",
    "steps": 12,
    "gravity": [0.0, -9.81, 0.0],
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.4, 0.4]},
    "body": {"kind": "grid", "spacing": 0.2},
    "material": {"youngs_modulus": 200.0, "mass_damping": 0.5, "stiffness_damping": 0.02},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.05, "theta": 0.6},
}


def test_run_directory_plays_and_scrubs(tmp_path, opened):
    scene = build_scene(BAR)
    directory = RunDirectory(tmp_path / "run")
    directory.begin(scene, describe(scene)[1])
    run_scene(scene, directory, steps=12)
    run = pl.simulate(scene, 12)
    editor, page = opened(open_target(str(tmp_path / "run")))
    assert editor.opened.kind == "player"
    wait_for(lambda: page.time() == pytest.approx(0.6))  # opens at its end
    tip = editor.session.tip()
    moved = [np.linalg.norm(scene.body.surface.points.at(u)[tip]) for u in run.displacements]
    assert page.tip() == pytest.approx(moved[12], abs=1e-3)
    assert not page.page.get_by_role("tab", name="Material").count()  # nothing to edit
    last = still(page)
    page.scrub(4)
    wait_for(lambda: page.time() == pytest.approx(0.2))
    assert page.tip() == pytest.approx(moved[4], abs=1e-3)
    wait_for(lambda: difference(last, page.picture()) > 0.01)
    page.press("Reset")
    wait_for(lambda: page.time() == 0.0)
    page.press("Play")
    seen = set()
    wait_for(lambda: seen.add(page.time()) or len(seen) > 3)  # it moves by itself
    page.press("Pause")
    assert seen <= {round(0.05 * k, 3) for k in range(13)}
    assert not editor.processes()  # nothing is computed


def test_fit_directory_shows_residuals_and_error_bars(tmp_path, opened):
    scene = build_scene(BAR)
    directory = FitDirectory(tmp_path / "fit")
    directory.begin(scene, {"unknowns": {"youngs_modulus": 230.0}, "cost": "auto"})
    run = pl.simulate(scene, 12)
    save_observations(Film(cameras=4, pixels=40, noise="0").take(run), directory.path / SEEN)
    row = {"truth": 200.0, "start": 230.0, "value": 200.0, "sigma": 3.0}
    directory.write_result(
        {"status": "finished", "unknowns": {"youngs_modulus": row}, "advice": ["look closer"]}
    )
    editor, page = opened(open_target(str(tmp_path / "fit")))
    assert editor.opened.kind == "fit"
    wait_for(lambda: "200 ± 3" in page.text())  # value and error bar
    wait_for(lambda: "+3σ" in page.text() and "look closer" in page.text())  # and on the slider
    wait_for(lambda: page.time() == pytest.approx(0.6))  # simulated up to the recording's end
    wait_for(lambda: editor.observed.rms is not None and not editor.simulation.running)
    fitted = editor.observed.rms
    wait_for(lambda: f"{1e3 * fitted:.3g} mm rms" in page.text())
    assert fitted < 0.02 * scene.body.spacing
    assert editor.observed.top == pytest.approx(0.05 * scene.body.spacing)
    wait_for(lambda: _share(page.picture(), 2, 0) > 0.003)  # points on the surface are blue
    assert _share(still(page), 0, 1) < 0.001
    slider = page.page.get_by_role("textbox").last  # beside the slider
    slider.fill("165")
    slider.press("Enter")
    wait_for(lambda: editor.session.scene.material.youngs_modulus == pytest.approx(165.0, abs=1.0))
    wait_for(lambda: page.time() == pytest.approx(0.6) and not editor.simulation.running)
    wait_for(lambda: editor.observed.rms > 5.0 * fitted)  # the wrong value does not fit
    wait_for(lambda: _share(page.picture(), 0, 1) > 0.003)  # and its points are red
    page.press("Back to the fitted values")
    wait_for(lambda: editor.session.scene.material.youngs_modulus == pytest.approx(200.0))
    wait_for(lambda: editor.observed.rms == pytest.approx(fitted, rel=1e-2))


def _share(picture: bytes, strong: int, weak: int) -> float:
    """Of pixels in which one channel is far stronger than another; red dots of what is held not."""
    p = pixels(picture)[:, 60:]
    return float((p[..., strong] > p[..., weak] + 70).mean())
