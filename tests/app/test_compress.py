"""Films as scenes and residuals: played back within the error, on this machine and on another."""

import json
import logging
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from command_line import block, in_process, write

import pliant as pl
from pliant.app.describing.scene_files import build_scene
from pliant.app.folders import compressed_film, film_head, motion_at
from pliant.app.folders.array_files import read_arrays, write_arrays
from pliant.observe.observations import Frame

NOISE = 2e-3


@pytest.fixture(scope="module")
def scene():
    return build_scene(block())


@pytest.fixture(scope="module")
def seen(scene):
    run = pl.simulate(scene, 4)
    ring = pl.ring_of_cameras(scene, 2, width=40, height=40)
    return pl.observe(run, ring, noise=NOISE, seed=5, dropped=0.1)


@pytest.fixture(scope="module")
def film(scene, seen, tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "film.npz"
    return pl.compress(scene, seen, path, error=1e-3)


def gaps(seen, other):
    """Differences of depths; pixels and cameras must be the same."""
    assert len(seen.frames) == len(other.frames)
    out = []
    for one, two in zip(seen.frames, other.frames, strict=True):
        assert one.time == two.time
        order = np.lexsort((one.pixel, one.camera))
        assert np.array_equal(one.pixel[order], two.pixel)
        assert np.array_equal(one.camera[order], two.camera)
        out.append(one.depth[order] - two.depth)
    return np.concatenate(out)


def test_a_film_comes_back_within_its_error(seen, film):
    again = pl.play(film.path)
    gap = np.abs(gaps(seen, again))
    assert gap.max() <= 1e-3
    assert gap.max() == pytest.approx(film.largest, abs=1e-12)
    assert again.noise == seen.noise
    assert film.spread == pytest.approx(NOISE, rel=0.1)
    assert film.predicted > 0.999
    # the numbers' own entropy, and 3 kB for the head, the scene and the outlines
    bits = np.log2(NOISE / 2e-3 * np.sqrt(2.0 * np.pi * np.e))
    assert film.bytes_after < 1.1 * seen.point_count * bits / 8.0 + 3000
    assert film.ratio == film.bytes_raw / film.path.stat().st_size


def test_playing_twice_gives_the_same_bits(film):
    first, second = pl.play(film.path), pl.play(film.path)
    assert all(
        np.array_equal(a.depth, b.depth) for a, b in zip(first.frames, second.frames, strict=True)
    )


def test_a_worse_scene_costs_bytes_and_no_truth(seen, film, tmp_path):
    stiff = build_scene(block(material={"youngs_modulus": 5000.0}))
    worse = pl.compress(stiff, seen, tmp_path / "worse.npz", error=1e-3)
    assert np.abs(gaps(seen, pl.play(worse.path))).max() <= 1e-3
    assert worse.bytes_after > film.bytes_after


def test_frames_between_steps_and_a_clock(scene, seen, film, tmp_path):
    """A clock that is 7 ms off is undone by a sighting that knows it."""
    late = replace(seen, frames=[replace(f, time=f.time + 0.007) for f in seen.frames])
    sighting = film_head.Sighting(time_offset=-0.007)
    known = pl.compress(scene, late, tmp_path / "known.npz", sighting=sighting)
    unknown = pl.compress(scene, late, tmp_path / "unknown.npz")
    assert known.spread == pytest.approx(film.spread, rel=1e-6)
    assert unknown.spread > 1.2 * film.spread
    assert np.abs(gaps(late, pl.play(unknown.path))).max() <= 1e-3


def test_another_machine_is_told_apart(seen, film, monkeypatch, caplog):
    """A simulation that ends elsewhere: the error grows by the difference, and that is said."""
    own = motion_at.simulate

    def elsewhere(*args, **options):
        run = own(*args, **options)
        return replace(run, displacements=run.displacements + np.array([0.004, 0.0, 0.0]))

    monkeypatch.setattr(motion_at, "simulate", elsewhere)
    with caplog.at_level(logging.WARNING):
        found = compressed_film.play(film.path)
    assert len(caplog.records) == 1
    assert "simulates the scene differently" in caplog.text
    assert found.drift > 5e-4
    off = np.concatenate([f.depth for f in found.seen.frames])
    true = np.concatenate([f.depth[np.lexsort((f.pixel, f.camera))] for f in seen.frames])
    assert np.quantile(np.abs(off - true), 0.9) < found.error + found.drift


def test_rounding_of_another_machine_is_not_worth_a_word(film, monkeypatch, caplog):
    own = motion_at.simulate

    def elsewhere(*args, **options):
        run = own(*args, **options)
        return replace(run, displacements=run.displacements * (1.0 + 1e-13))

    monkeypatch.setattr(motion_at, "simulate", elsewhere)
    with caplog.at_level(logging.WARNING):
        found = compressed_film.play(film.path)
    assert not caplog.records
    assert 0.0 <= found.drift < 1e-9


def test_images_come_back_to_the_bit(seen, tmp_path, capfd, monkeypatch):
    pl.save_observations(seen, tmp_path / "png", "depth")
    toml, out = write(tmp_path / "block.toml", block()), tmp_path / "film.npz"
    code, text, _ = in_process(
        capfd, monkeypatch, "compress", toml, "--observations", tmp_path / "png", "--out", out,
        "--error", "0", "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(text)
    images = sorted((tmp_path / "png").glob("depth/*/*.png"))
    assert result["bytes_before"] == sum(p.stat().st_size for p in images)
    assert (result["largest_error"], result["bytes_after"]) == (0.0, out.stat().st_size)
    assert out.with_suffix(".png").stat().st_size > 10_000
    code, text, _ = in_process(
        capfd, monkeypatch, "play", out, "--out", tmp_path / "again", "--json"
    )
    assert (code, json.loads(text)["layout"]) == (0, "depth")
    for path in images:
        again = tmp_path / "again" / path.relative_to(tmp_path / "png")
        assert again.read_bytes() == path.read_bytes()
    code, _, said = in_process(capfd, monkeypatch, "play", out, "--out", tmp_path / "again")
    assert (code, "holds observations" in said) == (2, True)


def test_a_fit_knows_how_its_recording_lies(seen, tmp_path, capfd, monkeypatch):
    """Depths that read 20 mm deep: the fit finds that out, and the film is as small as without."""
    deep = [replace(f, depth=f.depth + 0.02) for f in seen.frames]
    pl.save_observations(replace(seen, frames=deep), tmp_path / "seen")
    toml, fit = write(tmp_path / "block.toml", block()), tmp_path / "fit"
    code, _, said = in_process(
        capfd, monkeypatch, "reconstruct", toml, "--observations", tmp_path / "seen", "--unknown",
        "youngs_modulus=520", "--unknown", "depth_offset=0", "--no-register", "--no-search",
        "--no-discretisation", "--out", fit,
    )  # fmt: skip
    assert code == 0, said
    code, text, said = in_process(
        capfd, monkeypatch, "compress", fit, "--out", tmp_path / "film.npz", "--json"
    )
    assert code == 0, said
    result = json.loads(text)
    assert result["residual"] == pytest.approx(NOISE, rel=0.15)  # not 20 mm
    assert result["largest_error"] <= 1e-3
    assert np.abs(gaps(replace(seen, frames=deep), pl.play(tmp_path / "film.npz"))).max() <= 1e-3


def test_what_cannot_be_compressed_is_refused(scene, seen, tmp_path):
    first = seen.frames[0]
    none = np.full(len(first), -1)
    bare = replace(seen, frames=[Frame(0.02, first.points, none, none, first.depth)])
    with pytest.raises(pl.BadInput, match="without camera and pixel"):
        pl.compress(scene, bare, tmp_path / "a.npz")
    with pytest.raises(pl.BadInput, match="an error above zero"):
        pl.compress(scene, seen, tmp_path / "a.npz", error=0.0)
    with pytest.raises(pl.BadInput, match="change the ending"):
        pl.compress(scene, seen, tmp_path / "a.zip")
    twice = replace(first, pixel=np.zeros_like(first.pixel))
    with pytest.raises(pl.BadInput, match="two points in one pixel"):
        pl.compress(scene, replace(seen, frames=[twice]), tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def _spoiled(path, change):
    arrays = read_arrays(path)
    head = json.loads(compressed_film.unpacked(arrays["head"].tobytes(), 10**7))
    change(arrays, head)
    data = compressed_film.packed(json.dumps(head).encode())
    return arrays | {"head": np.frombuffer(data, np.uint8)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, h: h.update(format="pliant film 7"), "another version"),
        (lambda a, h: h.update(step=-1.0), "step"),
        (lambda a, h: h.pop("times"), "times: this key is missing"),
        (lambda a, h: h.update(times=[1e9 * k for k in range(4)]), "time steps away"),
        (lambda a, h: h["views"].__setitem__(0, [7]), "a camera that it does not have"),
        (lambda a, h: h["lengths"].update(masks=3), "other lengths"),
        (lambda a, h: h["files"].update({"../x": h["files"].pop("scene.toml")}), "a name"),
        (lambda a, h: h["cameras"][0]["intrinsic"].update(width=10**6), "cut off"),
        (lambda a, h: h["cameras"][0]["intrinsic"].update(width=10**8), "not possible"),
        (lambda a, h: h["files"]["scene.toml"].__setitem__(1, 5), "another length"),
        (lambda a, h: a.update(images=a["images"][:-40]), "other lengths"),
        (lambda a, h: a.update(images=np.zeros_like(a["images"])), "a stream"),
        (lambda a, h: a.update(scene=a["scene"].astype(float)), "no 'scene' of bytes"),
    ],
)
def test_spoiled_films_end_in_a_sentence(film, tmp_path, capfd, monkeypatch, change, words):
    path = tmp_path / "film.npz"
    write_arrays(path, **_spoiled(film.path, change))
    code, out, said = in_process(capfd, monkeypatch, "play", path, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert words in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_scene_may_not_reach_out_of_its_film(film, tmp_path):
    """A text that names a file of the reader's machine."""
    arrays = read_arrays(film.path)
    head = json.loads(compressed_film.unpacked(arrays["head"].tobytes(), 10**7))
    text = b'[shape]\ntype = "field"\nfile = "/etc/hostname"\n'
    data = compressed_film.packed(text)
    head["files"] = {"scene.toml": [len(data), len(text)]}
    told = compressed_film.packed(json.dumps(head).encode())
    path = tmp_path / "film.npz"
    write_arrays(
        path, head=np.frombuffer(told, np.uint8), scene=np.frombuffer(data, np.uint8),
        images=arrays["images"],
    )  # fmt: skip
    with pytest.raises(pl.BadInput, match="which it does not hold"):
        pl.play(path)


def test_bytes_that_were_changed_are_found(film, tmp_path):
    data = bytearray(film.path.read_bytes())
    with zipfile.ZipFile(film.path) as archive:
        at = archive.getinfo("images.npy").header_offset + 400
    data[at] ^= 0x40
    path = tmp_path / "film.npz"
    path.write_bytes(data)
    with pytest.raises(pl.BadInput, match="damaged"):
        pl.play(path)
    path.write_bytes(film.path.read_bytes()[:-100])
    with pytest.raises(pl.BadInput, match="damaged"):
        pl.play(path)
