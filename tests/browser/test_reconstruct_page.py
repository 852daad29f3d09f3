"""A fit started in the page, from a recording in the folder: it converges before one's eyes."""

import pytest
from pages import wait_for

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from pliant.app.editor.opening import Opened
from pliant.app.folders.films import Film
from pliant.observe.files import save_observations

BAR = {
    "title": "bar",
    "steps": 8,
    "shape": {"type": "box", "center": [0.6, 0.0, 0.0], "size": [1.2, 0.4, 0.4]},
    "body": {"kind": "grid", "spacing": 0.2},
    "material": {"youngs_modulus": 300.0, "mass_damping": 0.1, "stiffness_damping": 0.01},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.03, "theta": 0.6},
}


@pytest.mark.slow  # tests/editor/test_reconstruct_panel.py is the quick one, without a page
def test_fit_from_a_recording_converges_in_the_page(opened, tmp_path):
    truth = build_scene(BAR)
    run = pl.simulate(truth, 8)
    save_observations(Film(cameras=3, pixels=32, noise="0.02voxel").take(run), tmp_path / "seen")
    start = {**BAR, "material": {**BAR["material"], "youngs_modulus": 360.0}}
    editor, page = opened(Opened("editor", "bar", build_scene(start), tmp_path))
    page.tab("Reconstruct")
    page.choose("Recording", "seen")
    page.tick("Poisson's ratio")  # leaves Young's modulus alone
    wait_for(lambda: not editor.reconstruct.unknowns["poisson_ratio"].value)
    page.press("Start the fit")
    wait_for(lambda: "iteration" in page.text())  # it shows how it goes
    wait_for(lambda: "±" in page.text())
    steps = editor.reconstruct._steps
    assert steps[0].rms > 0.006
    assert steps[-1].rms == pytest.approx(0.004, rel=0.1)  # the noise: 0.02 of 0.2 m
    found, sigma = (editor.reconstruct._found[k]["youngs_modulus"] for k in ("values", "sigma"))
    assert found == pytest.approx(300.0, abs=max(4.0 * sigma, 1.0))
    assert f"{found:.5g} ± {sigma:.2g}" in page.text()
    assert page.page.locator(".uplot").first.is_visible()  # the residual over the iterations
    page.press("Use these values")
    wait_for(lambda: editor.session.scene.material.youngs_modulus == found)
