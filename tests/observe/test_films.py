"""Films: what cameras see, and what noise, outliers, losses and steps of the depth do to it."""

import json
import sys

import numpy as np
import pytest

import pliant as pl
from pliant.app import cli
from pliant.app.folders.films import Film
from pliant.observe.files import load_observations

NOISE = 0.03
SCENE = pl.Scene(
    pl.GridBody(pl.shapes.sphere(radius=0.6), 0.2),
    pl.Material(500.0, 0.3, 1.0),
    gravity=(0.0, -3.0, 1.0),
    integrator=pl.Newmark1(0.02, 0.6),
)
CAMERAS = pl.ring_of_cameras(SCENE, 4, width=40, height=40)

BALL = """
steps = 2
shape = { type = "sphere", radius = 0.6 }
body = { kind = "grid", spacing = 0.3 }
material = { youngs_modulus = 500.0 }
fixed = [{ region = { type = "half_space", normal = [0, -1, 0], offset = -0.4 } }]
integrator = { type = "Newmark1", dt = 0.02, theta = 0.6 }
"""
FEW = ("--cameras", "3", "--pixels", "24")


@pytest.fixture(scope="module")
def fall():
    return pl.simulate(SCENE, 4)


@pytest.fixture(scope="module")
def clean(fall):
    seen = pl.observe(fall, CAMERAS)
    assert seen.noise is None
    assert seen.point_count > 3000
    return seen


def together(seen, name):
    return np.concatenate([getattr(frame, name) for frame in seen.frames])


def along_the_rays(seen):
    """The ray of every point, (points, 3)."""
    rays = np.stack([camera.rays() for camera in seen.cameras])
    return rays[together(seen, "camera"), together(seen, "pixel")]


def same_bits(a, b):
    names = ("points", "camera", "pixel", "depth")
    return [
        all(getattr(x, n).tobytes() == getattr(y, n).tobytes() for n in names)
        for x, y in zip(a.frames, b.frames, strict=True)
    ]


def near(share, asked, count):
    """Within four standard deviations of a binomial share."""
    return abs(share - asked) < 4.0 * np.sqrt(asked * (1.0 - asked) / count)


@pytest.mark.parametrize(
    "flaws",
    [
        {"noise": NOISE},
        {"noise": NOISE, "kind": "points"},
        {"outliers": 0.1},
        {"dropped": 0.1},
        {"noise": NOISE, "outliers": 0.1, "dropped": 0.1, "quantisation": 0.01},
    ],
    ids=" ".join,
)
def test_the_seed_decides_every_bit(fall, flaws):
    first = pl.observe(fall, CAMERAS, seed=5, **flaws)
    assert all(same_bits(first, pl.observe(fall, CAMERAS, seed=5, **flaws)))
    assert not any(same_bits(first, pl.observe(fall, CAMERAS, seed=6, **flaws)))


def test_without_flaws_the_seed_says_nothing(fall, clean):
    assert all(same_bits(clean, pl.observe(fall, CAMERAS, seed=7)))


def test_depth_noise_is_gaussian_along_the_ray(fall, clean):
    seen = pl.observe(fall, CAMERAS, noise=NOISE, seed=1)
    assert seen.noise == NOISE
    assert (together(seen, "pixel") == together(clean, "pixel")).all()
    z = (together(seen, "depth") - together(clean, "depth")) / NOISE
    n = len(z)
    assert abs(z.mean()) < 4.0 / np.sqrt(n)
    assert z.std() == pytest.approx(1.0, abs=4.0 / np.sqrt(2.0 * n))
    for reach, share in ((1.0, 0.682689), (2.0, 0.954500)):
        assert near((np.abs(z) < reach).mean(), share, n)
    moved = together(seen, "points") - together(clean, "points")
    rays = along_the_rays(clean)
    assert np.abs(moved - NOISE * z[:, None] * rays).max() < 1e-12


def test_noise_is_drawn_anew_for_every_pixel_camera_and_frame(fall, clean):
    """No two images, nor neighbours of one, share their noise."""
    seen = pl.observe(fall, CAMERAS, noise=NOISE, seed=1)
    images = np.full((4, 4, 1600), np.nan)
    for k, (frame, exact) in enumerate(zip(seen.frames, clean.frames, strict=True)):
        images[k, frame.camera, frame.pixel] = (frame.depth - exact.depth) / NOISE
    for a, b in (
        (images[1:], images[:-1]),
        (images[:, 1:], images[:, :-1]),
        (images[:, :, 1:], images[:, :, :-1]),
    ):
        both = np.isfinite(a) & np.isfinite(b)
        assert both.sum() > 1000
        assert abs((a * b)[both].mean()) < 4.0 / np.sqrt(both.sum())


@pytest.mark.parametrize("asked", [0.02, 0.3])
@pytest.mark.parametrize("kind", ["depth", "points"])
def test_share_of_lost_pixels(fall, clean, asked, kind):
    seen = pl.observe(fall, CAMERAS, dropped=asked, seed=2, kind=kind)
    assert near(1.0 - seen.point_count / clean.point_count, asked, clean.point_count)
    for left, all_of in zip(seen.frames, clean.frames, strict=True):  # the others stay as they were
        assert set(map(tuple, left.points)) <= set(map(tuple, all_of.points))


@pytest.mark.parametrize("asked", [0.02, 0.3])
def test_share_and_size_of_outliers(fall, clean, asked):
    """A wild depth lies evenly between half and one and a half times the true one."""
    seen = pl.observe(fall, CAMERAS, outliers=asked, seed=3)
    ratio = together(seen, "depth") / together(clean, "depth")
    wild = ratio != 1.0
    assert near(wild.mean(), asked, clean.point_count)
    ratio = ratio[wild]
    assert ratio.min() >= 0.5
    assert ratio.max() <= 1.5
    error = 1.0 / np.sqrt(12.0 * len(ratio))
    assert abs(ratio.mean() - 1.0) < 4.0 * error
    assert near((np.abs(ratio - 1.0) < 0.25).mean(), 0.5, len(ratio))


def test_lost_pixels_and_outliers_are_different_ones(fall, clean):
    """Shares of all pixels: of those that are left, more are wild."""
    seen = pl.observe(fall, CAMERAS, outliers=0.2, dropped=0.3, seed=4)
    n = clean.point_count
    wild = 0
    for left, all_of in zip(seen.frames, clean.frames, strict=True):
        depth = np.zeros((4, 1600))
        depth[all_of.camera, all_of.pixel] = all_of.depth
        wild += (left.depth != depth[left.camera, left.pixel]).sum()
    assert near(wild / n, 0.2, n)
    assert near(seen.point_count / n, 0.7, n)


@pytest.mark.parametrize("flaws", [{}, {"noise": NOISE, "outliers": 0.1}], ids=["exact", "noisy"])
def test_stored_depths_are_whole_steps(fall, flaws):
    step = 0.07
    exact = together(pl.observe(fall, CAMERAS, seed=5, **flaws), "depth")
    seen = pl.observe(fall, CAMERAS, seed=5, quantisation=step, **flaws)
    assert seen.noise == pytest.approx(np.hypot(flaws.get("noise", 0.0), step / np.sqrt(12.0)))
    depth = together(seen, "depth")
    assert np.abs(depth / step - np.round(depth / step)).max() < 1e-9
    assert np.abs(depth - exact).max() <= 0.5 * step + 1e-12
    assert len(np.unique(np.round(depth / step))) > 5
    origin = np.stack([c.position for c in CAMERAS])[together(seen, "camera")]
    away = np.linalg.norm(together(seen, "points") - origin, axis=1)
    assert away == pytest.approx(depth, abs=1e-12)


def test_points_are_blurred_in_every_direction(fall, clean):
    """Their covariance is the unit matrix, seen along the rays and across them too."""
    seen = pl.observe(fall, CAMERAS, noise=NOISE, seed=6, kind="points")
    assert not any(frame.organised for frame in seen.frames)
    assert np.isnan(together(seen, "depth")).all()
    z = (together(seen, "points") - together(clean, "points")) / NOISE
    n = len(z)
    assert np.abs(z.mean(axis=0)).max() < 4.0 / np.sqrt(n)
    off = np.cov(z.T) - np.eye(3)
    assert np.abs(np.diag(off)).max() < 4.0 * np.sqrt(2.0 / n)
    assert np.abs(off[np.triu_indices(3, 1)]).max() < 4.0 / np.sqrt(n)
    rays = along_the_rays(clean)
    along = np.einsum("ij,ij->i", z, rays)
    across = np.linalg.norm(z - along[:, None] * rays, axis=1)
    assert (along**2).mean() == pytest.approx(1.0, abs=4.0 * np.sqrt(2.0 / n))
    assert (across**2).mean() == pytest.approx(2.0, abs=4.0 * np.sqrt(4.0 / n))


def test_the_nearer_of_two_balls_hides_the_other():
    """Two apart on the camera's axis: depths of both are known, and which of them is seen."""
    centres, radii = np.array([[0.0, 0.0, 0.9], [0.0, 0.0, -0.9]]), (0.4, 0.9)
    parts = [pl.shapes.sphere(center=c, radius=r) for c, r in zip(centres, radii, strict=True)]
    scene = pl.Scene(
        pl.GridBody(pl.shapes.union(*parts), 0.2), pl.Material(500.0, 0.3, 1.0), gravity=(0, 0, 0)
    )
    camera = pl.Camera.looking((0, 0, 5), (0, 0, 0), width=40, height=40, view_angle=25.0)
    seen = pl.observe(pl.simulate(scene, 1), [camera]).frames[0]
    depth = np.full(camera.pixel_count, np.inf)
    depth[seen.pixel] = seen.depth
    rays = camera.rays()
    exact, miss = [], []
    for centre, radius in zip(centres, radii, strict=True):
        middle = rays @ (centre - camera.position)
        aside = np.linalg.norm(camera.position + middle[:, None] * rays - centre, axis=1)
        exact.append(middle - np.sqrt(np.maximum(radius**2 - aside**2, 0.0)))
        miss.append(aside / radius)
    front, both = miss[0] < 0.9, (miss[0] < 0.9) & (miss[1] < 0.9)
    rear, nothing = (miss[0] > 1.05) & (miss[1] < 0.9), (miss[0] > 1.05) & (miss[1] > 1.05)
    assert min(both.sum(), rear.sum(), nothing.sum()) > 100
    assert np.abs(depth - exact[0])[front].max() < 5e-3
    assert np.abs(depth - exact[1])[rear].max() < 5e-3
    assert (exact[1] - exact[0])[both].min() > 1.0
    assert np.isinf(depth[nothing]).all()


TORUS = pl.Scene(
    pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.25),
    pl.Material(2000.0, 0.3, 3.0, mass_damping=0.1, stiffness_damping=0.01),
    gravity=(4.0, -9.0, 3.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 1.35, 0), size=(1, 0.3, 1)))],
    integrator=pl.Newmark1(0.02, 0.6),
)


@pytest.fixture(scope="module")
def swing():
    return pl.simulate(TORUS, 10)


@pytest.mark.parametrize("loss", [pytest.param("huber", marks=pytest.mark.slow), "tukey"])
def test_a_robust_fit_survives_outliers(swing, loss):
    """One depth in twenty is wrong by up to a half; least squares end 20 sigma and more away."""
    cameras = pl.ring_of_cameras(TORUS, 4, width=40, height=40)
    seen = pl.observe(swing, cameras, noise=0.02, seed=3, outliers=0.05)
    fit = pl.reconstruct(TORUS, seen, {"youngs_modulus": 2200.0}, loss=loss)
    sigma = fit.sigma["youngs_modulus"]
    assert abs(fit.values["youngs_modulus"] - 2000.0) < 3.0 * sigma
    assert 0.0 < sigma < 0.03 * 2000.0
    # the outliers are there: spread evenly over the depth, with a variance of a twelfth
    away = np.sqrt((together(seen, "depth") ** 2).mean())
    assert fit.rms == pytest.approx(away * np.sqrt(0.05 / 12.0), rel=0.15)


# --- the options at the terminal


@pytest.fixture
def run(tmp_path, capfd, monkeypatch):
    (tmp_path / "ball.toml").write_text(BALL)

    def go(name, *arguments, code=0):
        given = [name, str(tmp_path / "ball.toml"), *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", ["pliant", *given])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capfd.readouterr()
        assert int(stop.value.code or 0) == code, err
        return out, err

    return go


def test_observe_quantises(tmp_path, run):
    run("observe", *FEW, "--out", tmp_path / "seen", "--quantisation", 0.05)
    depth = together(load_observations(tmp_path / "seen"), "depth")
    assert np.abs(depth / 0.05 - np.round(depth / 0.05)).max() < 1e-9
    run("observe", *FEW, "--out", tmp_path / "exact")
    depth = together(load_observations(tmp_path / "exact"), "depth")
    assert np.abs(depth / 0.05 - np.round(depth / 0.05)).max() > 0.1


@pytest.mark.parametrize("layout", ["npz", "ply"])
def test_observe_blurs_points(tmp_path, run, layout):
    """Sideways too: no point lies on the ray of a pixel any more."""
    for kind, noise in (("depth", 0), ("points", "10mm")):
        run("observe", *FEW, "--out", tmp_path / kind, "--kind", kind, "--noise", noise,
            "--layout", layout)  # fmt: skip
    seen, exact = (load_observations(tmp_path / kind) for kind in ("points", "depth"))
    assert seen.noise == 0.01
    assert not any(frame.organised for frame in seen.frames)
    z = (together(seen, "points") - together(exact, "points")) / 0.01
    assert z.std(axis=0) == pytest.approx(np.ones(3), abs=4.0 / np.sqrt(2.0 * len(z)))


def test_a_fit_films_with_the_same_flaws(tmp_path, run):
    common = ("reconstruct", *FEW, "--out", tmp_path / "fit", "--no-report", "--unknown",
              "youngs_modulus=550", "--noise", "1mm", "--dropped", 0.3)  # fmt: skip
    text, _ = run(*common, "--kind", "points", "--max-iterations", 1, "--json")
    assert json.loads(text)["status"] == "finished"
    asked = json.loads((tmp_path / "fit" / "fit.json").read_text())
    assert (asked["kind"], asked["dropped"]) == ("points", 0.3)
    assert "quantisation" not in asked
    seen = load_observations(tmp_path / "fit" / "observations")
    assert not any(frame.organised for frame in seen.frames)
    _, err = run(*common, "--max-iterations", 1, code=2)
    assert "'kind' was 'points'" in err
    _, err = run(*common, "--kind", "points", "--cost", "depth", "--overwrite", code=2)
    assert "--cost depth" in err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--quantisation", -0.01), "--quantisation must be a length"),
        (("--quantisation", "nan"), "--quantisation must be a finite"),
        (("--quantisation", "inf"), "--quantisation must be a finite"),
        (("--kind", "cloud"), "--kind must be one of depth, points, not 'cloud'"),
        (("--kind", "points", "--quantisation", 0.01), "--quantisation changes depths"),
        (("--kind", "points", "--outliers", 0.1), "--outliers changes depths"),
        (("--kind", "points", "--layout", "depth"), "--layout depth"),
        (("--outliers", 1.0), "--outliers must be a share"),
        (("--dropped", "nan"), "--dropped must be a finite"),
        (("--outliers", 0.6, "--dropped", 0.6), "together"),
    ],
)
def test_wrong_flaws_are_one_sentence(tmp_path, run, options, match):
    """Before anything is simulated or written."""
    text, err = run("observe", "--out", tmp_path / "seen", *options, code=2)
    assert match in err
    assert err.count("\n") == 1
    assert text == ""
    assert not (tmp_path / "seen").exists()


def test_a_film_is_what_observe_gives(fall):
    flaws = {"outliers": 0.1, "dropped": 0.2, "quantisation": 0.01}
    film = Film(cameras=4, pixels=40, noise="0.15voxel", seed=9, **flaws)
    same = pl.observe(fall, CAMERAS, noise=0.15 * SCENE.body.spacing, seed=9, **flaws)
    assert all(same_bits(film.take(fall), same))
