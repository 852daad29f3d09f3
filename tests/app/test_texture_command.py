"""`pliant texture`: from a film with colours to a painted, moving body."""

import json

import numpy as np
import pygltflib
from command_line import block, in_process, write


def test_a_film_with_colours_paints_the_body(tmp_path, capfd, monkeypatch):
    scene, film, out = (tmp_path / name for name in ("scene.toml", "film", "body.glb"))
    write(scene, block())
    words = ["observe", str(scene), "--out", str(film), "--cameras", "2", "--pixels", "60",
             "--steps", "3", "--colours"]  # fmt: skip
    assert in_process(capfd, monkeypatch, *words)[0] == 0
    assert len(list(film.glob("colour/camera_*/*.png"))) == 6
    words = ["texture", str(scene), "--observations", str(film), "--out", str(out), "--json"]
    code, answer, _ = in_process(capfd, monkeypatch, *words)
    assert code == 0
    told = json.loads(answer)
    assert told["images"] == 6
    assert told["coverage"] > 0.5
    assert told["residual"] < 0.05
    written = pygltflib.GLTF2().load(str(out))
    primitive = written.meshes[0].primitives[0]
    assert written.accessors[primitive.attributes.COLOR_0].count == told["vertices"]
    assert len(primitive.targets) == told["frames"] - 1
    assert (tmp_path / "body.png").is_file()
    assert in_process(capfd, monkeypatch, *words)[0] == 2  # the file is there already


def test_a_film_without_colours_is_refused_and_leaves_nothing(tmp_path, capfd, monkeypatch):
    scene, film, out = (tmp_path / name for name in ("scene.toml", "film", "body.glb"))
    write(scene, block())
    words = ["observe", str(scene), "--out", str(film), "--cameras", "2", "--pixels", "24",
             "--steps", "1"]  # fmt: skip
    assert in_process(capfd, monkeypatch, *words)[0] == 0
    words = ["texture", str(scene), "--observations", str(film), "--out", str(out)]
    code, _, complaint = in_process(capfd, monkeypatch, *words)
    assert code == 2
    assert "has no colour images" in complaint
    assert not out.exists()


def test_vertex_colours_are_linear_light():
    from pliant.app.formats.gltf import _linear

    assert np.allclose(_linear(np.array([0.0, 0.5, 1.0])), [0.0, 0.21404, 1.0], atol=1e-5)
