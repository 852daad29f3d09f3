"""observe, reconstruct, demo, check-gradients and landscape, as a person runs them."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from command_line import block, in_process, pliant, write

import pliant as pl
from pliant.app.describing.scene_files import build_scene, load_scene
from pliant.app.editor.opening import open_target
from pliant.app.fitted import fits
from pliant.app.fitted.fit_values import labelled, parse_unknowns, scene_values, unlabelled
from pliant.app.folders.films import noise_in_metres
from pliant.app.pictures import evidence
from pliant.core.errors import BadInput
from pliant.observe.files import load_observations
from pliant.observe.track_files import save_tracks

SOFT = {"youngs_modulus": 200.0, "mass_damping": 0.1, "stiffness_damping": 0.01}
FILM = ("--cameras", 3, "--pixels", 32)


@pytest.fixture(autouse=True)
def _fewer_pictures(monkeypatch):
    monkeypatch.setattr(evidence, "MOMENTS", 1)


@pytest.fixture
def scene(tmp_path):
    return write(tmp_path / "block.toml", block(material=SOFT))


@pytest.fixture
def run(capfd, monkeypatch):
    def go(*arguments, code=0):
        got, out, err = in_process(capfd, monkeypatch, *arguments)
        assert got == code, err
        return out, err

    return go


def test_observed_then_reconstructed(scene, tmp_path, run):
    """Without noise the values come back: the film and the fit share one model."""
    seen, out = tmp_path / "seen", tmp_path / "fit"
    text, _ = run("observe", scene, "--out", seen, *FILM, "--noise", 0, "--json")
    assert json.loads(text)["frames"] == 6
    text, err = run(
        "reconstruct", scene, "--observations", seen, "--out", out, "--json",
        "--unknown", "youngs_modulus=230", "--unknown", "poisson_ratio=0.33",
    )  # fmt: skip
    result = json.loads(text)
    assert result == json.loads((out / "result.json").read_text())
    E, nu = result["unknowns"]["youngs_modulus"], result["unknowns"]["poisson_ratio"]
    assert (E["truth"], E["start"]) == (200.0, pytest.approx(230.0))
    assert E["value"] == pytest.approx(200.0, rel=1e-3)
    assert nu["value"] == pytest.approx(0.3, rel=1e-2)
    assert result["steps"] == 6
    assert result["converged"]
    for key in ("iterations", "seconds", "forward_ms", "adjoint_ms"):
        assert result[key] > 0
    assert "iteration  0" in err
    lines = [json.loads(x) for x in (out / "history.jsonl").read_text().splitlines()]
    assert lines[0]["values"]["youngs_modulus"] == pytest.approx(230.0)
    assert lines[-1]["values"]["youngs_modulus"] == pytest.approx(E["value"], rel=1e-6)
    assert lines[-1]["cost"] < lines[0]["cost"]
    page = (out / "report.html").read_text()
    assert len(re.findall('src="data:image/png;base64,', page)) == 6
    assert not re.search(r"(src|href)=\"(?!data:)|url\(|@import", page)
    assert {p.name for p in (out / "figures").iterdir()} == {
        f"{n}.png" for n in ("motion", "residuals", "convergence", "path", "ellipses", "statistics")
    }


def test_tracked_points_are_fitted(scene, tmp_path, run):
    """A table of a motion in millimetres whose clock is 5 ms late, described by tracks.toml."""
    truth, out = load_scene(scene), tmp_path / "fit"
    at = [[1.0, 0.25, 0.0], [1.0, -0.25, 0.1], [0.6, 0.0, 0.25]]
    seen = pl.TrackedPoints.of(pl.simulate(truth, 6), at, names=("a", "b", "c"))
    late = replace(seen, positions=1e3 * seen.positions, times=seen.times + 0.005)
    save_tracks(late, tmp_path / "seen.csv")
    places = "".join(f"[points.{n}]\nat = {x}\n" for n, x in zip("abc", at, strict=True))
    (tmp_path / "tracks.toml").write_text(f'file = "seen.csv"\nunits = "mm"\n{places}')
    text, _ = run(
        "reconstruct", scene, "--observations", tmp_path, "--out", out, "--json",
        "--unknown", "youngs_modulus=230", "--unknown", "time_offset", "--no-discretisation",
    )  # fmt: skip
    result = json.loads(text)
    assert result["unknowns"]["youngs_modulus"]["value"] == pytest.approx(200.0, rel=2e-3)
    assert result["unknowns"]["time_offset"]["value"] == pytest.approx(-0.005, abs=2e-5)
    assert (result["frames"], result["points"]) == (6, 18)
    assert result["tracked"] == ["a", "b", "c"]
    assert (out / "figures" / "tracks.png").is_file()
    opened = open_target(str(out)).fit
    assert opened is not None
    assert len(opened.seen.frames[0]) == 3
    _, err = run("reconstruct", scene, "--observations", tmp_path, "--cost", "depth", code=2)
    assert "holds tracked points" in err


def test_what_observe_suggests_works(scene, tmp_path, run):
    """For a scene, and for a run whose folder has a space in its name."""
    place = tmp_path / "a run"
    run("simulate", scene, "--out", place, "--no-pictures")
    for filmed in (scene, place):
        seen = tmp_path / f"seen {filmed.stem}"
        text, _ = run("observe", filmed, "--out", seen, *FILM, "--noise", 0)
        command = shlex.split(text[text.index("next: ") + len("next: ") :])
        assert command[0] == "pliant"
        text, _ = run(
            *command[1:], "--out", tmp_path / f"fit {filmed.stem}", "--no-report", "--json",
            "--unknown", "youngs_modulus=220",
        )  # fmt: skip
        found = json.loads(text)["unknowns"]["youngs_modulus"]
        assert found["value"] == pytest.approx(200.0, rel=1e-3)


def test_a_run_of_a_mesh_is_a_scene_with_its_own_mesh(tmp_path):
    """Meshing is not repeatable: the folder's mesh is used, not another of the same shape."""
    bar = block(body={"kind": "tets", "edge_length": 0.3}, steps=2)
    pliant("simulate", write(tmp_path / "bar.toml", bar), "--out", tmp_path / "run",
           "--no-pictures")  # fmt: skip
    pliant("simulate", tmp_path / "run", "--out", tmp_path / "again", "--no-pictures")
    one, other = (np.load(tmp_path / f / "body.npz")["nodes"] for f in ("run", "again"))
    assert np.array_equal(one, other)


def test_demo_films_itself_and_prints_the_table(tmp_path, run):
    heavy = block(material=SOFT | {"youngs_modulus": 500.0, "density": 10.0})
    scene = write(tmp_path / "block.toml", heavy)
    out = tmp_path / "demo"
    text, err = run("demo", "--out", out, "--scene", scene, "--pixels", 30)
    assert "the truth here" in err
    head, first, second = text.splitlines()[:3]
    assert head.split()[:5] == ["unknown", "truth", "start", "value", "sigma"]
    assert first.split()[:3] == ["youngs_modulus", "500", "2200"]
    assert second.split()[:3] == ["poisson_ratio", "0.3", "0.32"]
    value, sigma = map(float, first.split()[3:5])
    assert abs(value - 500.0) < 3.0 * sigma
    assert (out / "demo.png").stat().st_size > 50_000
    assert (out / "report.html").is_file()


def steps_of(folder):
    """The steps of a fit without the times they took."""
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line) | {"seconds": 0.0} for line in lines]


def test_an_interrupted_fit_goes_on(scene, tmp_path, run, monkeypatch):
    common = ("reconstruct", scene, *FILM, "--noise", "0.05voxel", "--no-report",
              "--unknown", "youngs_modulus=700")  # fmt: skip
    text, _ = run(*common, "--out", tmp_path / "whole", "--json")
    whole = json.loads(text)
    out = tmp_path / "parts"
    append = fits.FitDirectory.append

    def stop_after_two(self, line):
        append(self, line)
        if line.step.iteration >= 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fits.FitDirectory, "append", stop_after_two)
        _, err = run(*common, "--out", out, code=130)
    assert "run the same command again" in err
    before = (out / "history.jsonl").read_text()
    assert len(before.splitlines()) == 2
    assert json.loads((out / "result.json").read_text())["status"] == "interrupted"
    (out / "history.jsonl").write_text(before + '{"iteration": 2, "hor')  # as a crash leaves it
    kept = sorted((out / "simulations").iterdir())
    assert len(kept) >= 2
    kept[-1].write_bytes(kept[-1].read_bytes()[:1000])
    text, err = run(*common, "--out", out, "--json")
    assert "continued after iteration 1" in err
    result = json.loads(text)
    assert result["unknowns"] == whole["unknowns"]  # to the last bit
    assert result["iterations"] == whole["iterations"]
    assert steps_of(out) == steps_of(tmp_path / "whole")
    assert not (out / "simulations").exists()

    _, err = run(*common, "--out", out)
    assert "finished already" in err
    changed = [*common[:-1], "youngs_modulus=250"]
    _, err = run(*changed, "--out", out, code=2)
    assert "holds another fit ('unknowns'" in err


@pytest.mark.parametrize(
    ("options", "last"),
    [
        (("--optimiser", "lbfgs"), 2),
        (("--optimiser", "bb"), 2),
        (("--multi-start", 2), 1),  # among the starts
        (("--multi-start", 2), 7),  # in the fit that follows
    ],
    ids=["lbfgs", "bb", "starts", "after-starts"],
)
def test_every_optimiser_goes_on(scene, tmp_path, run, monkeypatch, options, last):
    out = tmp_path / "parts"
    common = ("reconstruct", scene, *FILM, "--noise", "0.05voxel", "--no-report", *options,
              "--unknown", "youngs_modulus=300", "--out", out)  # fmt: skip
    append = fits.FitDirectory.append

    def stop(self, line):
        append(self, line)
        if line.step.iteration >= last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fits.FitDirectory, "append", stop)
        run(*common, code=130)
    before = steps_of(out)
    text, _ = run(*common, "--json")
    assert steps_of(out)[: len(before)] == before
    fitted = [x for x in steps_of(out) if x["stage"] == ""]
    assert [x["iteration"] for x in fitted] == sorted(x["iteration"] for x in fitted)
    E = json.loads(text)["unknowns"]["youngs_modulus"]
    assert E["value"] == pytest.approx(200.0, abs=3.0 * E["sigma"])


def test_a_recording_from_elsewhere(scene, tmp_path, run, caplog):
    """Points in millimetres, without times, cameras or record, with a wall behind them."""
    seen = tmp_path / "seen"
    run("observe", scene, "--out", seen, *FILM, "--noise", "0.02voxel", "--layout", "ply")
    frames = load_observations(seen).frames
    for path in seen.iterdir():
        path.unlink()
    rng = np.random.default_rng(0)
    for k, frame in enumerate(frames, start=1):
        wall = rng.uniform((-2, -2, -4.1), (2, 2, -4.0), (200, 3))
        points = 1000.0 * np.concatenate([frame.points, wall])
        rows = "\n".join(" ".join(f"{x:.6f}" for x in p) for p in points)
        head = "ply\nformat ascii 1.0\nelement vertex {}\n" + "".join(
            f"property float {a}\n" for a in "xyz"
        )
        text = f"{head.format(len(points))}end_header\n{rows}\n"
        (seen / f"cloud{k}.ply").write_text(text)
    # a frame at rest, as recordings begin; its number makes the others' times come out right
    still = load_scene(scene).body
    points = 1000.0 * still.surface.positions(still.nodes)
    rows = "\n".join(" ".join(f"{x:.6f}" for x in p) for p in points)
    (seen / "cloud0.ply").write_text(f"{head.format(len(points))}end_header\n{rows}\n")
    text, _ = run(
        "reconstruct", scene, "--observations", seen, "--frame-rate", 50, "--out",
        tmp_path / "fit", "--unknown", "youngs_modulus=230", "--json",
    )  # fmt: skip
    assert "taken to be in mm" in caplog.text
    assert "1200 of" in caplog.text
    result = json.loads(text)
    E = result["unknowns"]["youngs_modulus"]
    assert E["truth"] is None
    assert E["value"] == pytest.approx(200.0, rel=0.02)


def test_a_run_directory_is_filmed(scene, tmp_path, run):
    out = tmp_path / "run"
    run("simulate", scene, "--out", out, "--every", 2, "--no-pictures")
    text, _ = run("observe", out, "--out", tmp_path / "a", *FILM, "--layout", "depth", "--json")
    assert json.loads(text)["frames"] == 3
    assert [f.time for f in load_observations(tmp_path / "a").frames] == pytest.approx(
        [0.04, 0.08, 0.12]
    )
    _, err = run("observe", scene, "--out", tmp_path / "a", *FILM, code=2)
    assert "--overwrite" in err
    _, err = run("observe", scene, "--out", out, *FILM, "--overwrite", code=2)
    assert "not empty" in err
    _, err = run("observe", tmp_path, "--out", tmp_path / "b", code=2)
    assert "holds no run" in err


def test_check_gradients(scene, run):
    text, _ = run(
        "check-gradients", scene, "--steps", 4, "--cameras", 2, "--pixels", 24, "--json",
        "--unknown", "youngs_modulus", "--unknown", "poisson_ratio", "--unknown", "density",
    )  # fmt: skip
    result = json.loads(text)
    assert result["agree"]
    rows = result["unknowns"]
    for row in rows.values():
        assert row["adjoint"] == pytest.approx(row["tangent"], rel=1e-6)
        assert row["complex_step"] == pytest.approx(row["tangent"], rel=1e-8)
        assert row["difference"] == pytest.approx(row["tangent"], rel=1e-3)
    # a body that falls under its weight shows only the ratio: E d/dE = - rho d/drho
    assert rows["density"]["tangent"] == pytest.approx(-rows["youngs_modulus"]["tangent"], rel=1e-5)


def test_check_gradients_of_a_recording(scene, run):
    names = ("time_offset", "recording_pose", "depth_scale", "depth_offset")
    options = [part for n in names for part in ("--unknown", n)]
    text, _ = run("check-gradients", scene, *FILM, "--steps", 3, *options, "--json")
    found = json.loads(text)
    assert found["agree"]
    assert len(found["unknowns"]) == 9


def test_landscape(scene, tmp_path, run):
    text, _ = run(
        "landscape", scene, "--points", 5, *FILM, "--noise", 0, "--steps", 4, "--json",
        "--out", tmp_path / "map",
    )  # fmt: skip
    result = json.loads(text)
    assert result["lowest"] == pytest.approx([200.0, 0.3])
    assert result["path"][0] == pytest.approx([220.0, 0.32])
    assert result["path"][-1] == pytest.approx([200.0, 0.3], rel=0.01)
    assert (tmp_path / "map" / "landscape.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--unknown", "youngs_modulos=3"), "youngs_modulus"),
        (("--unknown", "youngs_modulus=soft"), "expected a number"),
        (("--unknown", "youngs_modulus=-3"), "positive"),
        (("--unknown", "density", "--unknown", "density=2"), "twice"),
        (("--unknown", "gravity=1,2"), "takes 3"),
        (("--unknown", "contact_stiffness"), "needs a start"),
        (("--cost", "best"), "--cost"),
        (("--noise", "loud"), "--noise"),
        (("--cameras", 0), "--cameras"),
        (("--observations", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_is_one_sentence(scene, tmp_path, run, options, match):
    out = tmp_path / "fit"
    text, err = run("reconstruct", scene, "--out", out, *options, code=2)
    assert match in err
    assert err.count("\n") == 1
    assert text == ""
    assert not out.exists()


def test_a_damaged_recording_leaves_nothing_behind(scene, tmp_path, run):
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "frame_0.npz").write_bytes(b"PK")
    out = tmp_path / "fit"
    _, err = run("reconstruct", scene, "--out", out, "--observations", tmp_path / "seen", code=2)
    assert "frame_0.npz" in err
    assert not out.exists()


def test_values_and_labels():
    plane = {"type": "plane", "normal": [0.1, 1.0, 0.0], "offset": -2.0}
    scene = build_scene(block(material=SOFT, obstacles=[plane]))
    own = scene_values(scene)
    assert own["youngs_modulus"] == 200.0
    starts = parse_unknowns(
        ["youngs_modulus", "ground_normal=0,1,0", "gravity=0,-9,0"], scene, away=True
    )
    assert starts["youngs_modulus"] == pytest.approx(220.0)
    numbers = labelled(starts, own, scene)
    assert numbers["gravity.y"] == -9.81
    back = unlabelled(starts, numbers, scene)
    assert back["ground_normal"] == pytest.approx(own["ground_normal"])
    assert back["gravity"] == pytest.approx(own["gravity"])
    assert noise_in_metres("0.5voxel", scene) == 0.125
    assert noise_in_metres("5mm", scene) == pytest.approx(0.005)
    with pytest.raises(BadInput):
        noise_in_metres("-1", scene)


def test_laws_are_ranked_and_the_best_can_be_looked_at(scene, tmp_path, run):
    out = tmp_path / "fit"
    command = ("reconstruct", scene, "--out", out, *FILM, "--steps", 4,
               "--max-iterations", 3, "--materials", "neo-hookean,st-venant-kirchhoff")  # fmt: skip
    text, _ = run(*command)
    assert re.search(r"^(neo|st)-[\w-]+ is best: law\.\w+ [\d.e+-]+ \+- [\d.e-]+", text, re.M)
    assert f"picture: {out / 'materials.png'}" in text
    result = json.loads((out / "result.json").read_text())
    assert result["status"] == "finished"
    assert [m["law"] for m in result["materials"]][0] == result["best"] == result["law"]["name"]
    opened = open_target(str(out))
    assert opened.scene.law.name == result["best"]
    for name, row in result["unknowns"].items():
        assert opened.scene.law.values[name.removeprefix("law.")] == pytest.approx(row["value"])
    _, err = run(*command)
    assert "is finished already" in err


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (("--optimiser", "newton"), "optimiser must be one of"),
        (("--materials", "neo-hooke"), "Did you mean 'neo-hookean'"),
        (("--materials", " , "), "needs names"),
        (("--prior", "density=3+-1"), "which is not unknown here"),
        (("--bound", "youngs_modulus=1,2"), "must enclose its start"),
    ],
)
def test_wrong_options_leave_nothing_behind(scene, tmp_path, run, option, complaint):
    """Before anything is simulated: the same folder then takes the corrected command."""
    _, err = run("reconstruct", scene, "--out", tmp_path / "fit", *option, code=2)
    assert complaint in err
    assert "is simulated" not in err
    assert not (tmp_path / "fit").exists()
