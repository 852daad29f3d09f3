"""Good folders to be spoilt: a scene, a run, a recording in three layouts, a fit; bad contents."""

import atexit
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hostile_case import BLOCK, Raw, toml_text
from hostile_fields import npy

JSON_VALUES: dict[str, Any] = {
    "NaN": Raw("NaN"), "Infinity": Raw("Infinity"), "1e400": Raw("1e400"),
    "10^400": Raw("1" + "0" * 400), "5000 digits": Raw("9" * 5000), "text": "much", "null": None,
    "true": True, "list": [], "table": {}, "nested": Raw("[" * 200 + "]" * 200),
}  # fmt: skip

TEXTS = {
    "empty": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "a number": b"3",
    "deep": b"[" * 100_000,
    "deeper": b'{"a":' * 50_000,
    "zeros": bytes(500),
    "not UTF-8": b'{"a": "\xff"}',
    "null": b"null",
    "a word": b'"finished"',
    "twenty megabytes": b'"' + b"x" * (20 * 2**20) + b'"',
}
"""Contents that no file of ours has."""


def json_text(value: Any) -> bytes:
    """JSON of plain values with Raw ones among them."""
    raws: list[str] = []

    def hide(item: Any) -> Any:
        if isinstance(item, Raw):
            raws.append(item.text)
            return f"@raw{len(raws) - 1}@"
        if isinstance(item, dict):
            return {k: hide(v) for k, v in item.items()}
        return [hide(v) for v in item] if isinstance(item, list) else item

    text = json.dumps(hide(value))
    for k, raw in enumerate(raws):
        text = text.replace(f'"@raw{k}@"', raw)
    return text.encode()


@cache
def templates() -> Path:
    """A folder with a scene, a run, a recording in three layouts, and a fit."""
    import pliant as pl
    from pliant.app.commands.simulate import simulate_into
    from pliant.app.describing.scene_files import build_scene
    from pliant.app.fitted.fit_directory import SEEN, FitDirectory
    from pliant.app.folders.films import Film
    from pliant.observe.files import save_observations

    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "scene.toml").write_text(toml_text(BLOCK | {"steps": 3}))
    simulate_into(str(folder / "scene.toml"), out=str(folder / "run"), pictures=False)
    scene = build_scene(BLOCK)
    seen = Film(cameras=2, pixels=16, noise="0").take(pl.simulate(scene, 3))
    for layout in ("npz", "ply", "depth"):
        save_observations(seen, folder / layout, layout)
    asked = {
        "priors": {}, "bounds": {}, "unknowns": {"youngs_modulus": 550.0, "poisson_ratio": 0.32},
        "cost": "auto", "loss": "huber", "observations": str(folder / "npz"), "units": None,
        "frame_rate": None, "crop": None,
    }  # fmt: skip
    directory = FitDirectory(folder / "fit")
    directory.begin(scene, asked)
    save_observations(seen, directory.path / SEEN)
    row = {"truth": None, "start": 550.0, "value": 500.0, "sigma": 4.0}
    directory.write_result({
        "status": "finished", "unknowns": {"youngs_modulus": row, "poisson_ratio": row | {
            "start": 0.32, "value": 0.3}}, "advice": ["look closer"], "converged": True,
        "iterations": 3, "seconds": 1.0, "rms": 0.001, "noise": 0.001,
    })  # fmt: skip
    line = {"iteration": 0, "horizon": 3, "cost": 1.0, "rms": 0.1, "stage": "", "seconds": 0.1,
            "values": {"youngs_modulus": 550.0, "poisson_ratio": 0.32}}  # fmt: skip
    (directory.path / "history.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def copied(name: str, folder: Path) -> Path:
    """A template's copy in a case's folder."""
    shutil.copytree(templates() / name, folder / name)
    return folder / name


def edited(name: str, file: str, change: Callable[[Any], Any] | bytes) -> Callable[[Path], Path]:
    """A template with another JSON file in it; change: of what it holds, or the bytes."""

    def make(folder: Path) -> Path:
        place = copied(name, folder)
        data = change
        if callable(change):
            data = json_text(change(json.loads((place / file).read_bytes())))
        assert isinstance(data, bytes)
        (place / file).write_bytes(data)
        return place

    return make


def bent_arrays(path: Path, change: dict[str, Any], without: str = "") -> None:
    """Exchange arrays of an .npz file; bytes are members as they are."""
    with np.load(path) as found:
        arrays: dict[str, Any] = dict(found)
    arrays |= change
    arrays.pop(without, None)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, value in arrays.items():
            archive.writestr(f"{name}.npy", value if isinstance(value, bytes) else npy(value))
    path.write_bytes(stream.getvalue())
