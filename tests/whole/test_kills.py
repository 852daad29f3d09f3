"""Killed at any moment, a run or a fit goes on and ends with the bytes of an uninterrupted one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from pliant.dynamics.implicit import SMALL_BODY

STEPS = 90
BAR = {
    "title": "bar",
    "steps": STEPS,
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.5, 0.5]},
    "body": {"kind": "grid", "spacing": 0.11},
    "material": {"youngs_modulus": 500.0, "poisson_ratio": 0.3, "stiffness_damping": 0.005},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "GeneralisedAlpha", "dt": 0.01},
}
FIT = ("--steps", "20", "--noise", "0.05voxel", "--no-report", "--unknown", "youngs_modulus=700",
       "--unknown", "poisson_ratio=0.25")  # fmt: skip
CLOCKS = ("seconds", "out", "_ms")
"""What no two runs have in common: times, and the folder's own name."""


def words(kind: str, scene: Path, out: Path) -> list[str]:
    own = ("--no-pictures",) if kind == "simulate" else FIT
    return [sys.executable, "-m", "pliant", kind, str(scene), "--out", str(out), *own]


def contents(folder: Path) -> dict[str, object]:
    """What a folder holds, by file, without the times that were measured."""
    out: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        name = str(path.relative_to(folder))
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                out[name] = {k: _timeless(k, arrays[k]) for k in arrays.files}
        elif path.suffix in (".json", ".jsonl"):
            out[name] = [_bare(json.loads(line)) for line in _documents(path)]
        else:
            out[name] = path.read_bytes()
    return out


def _documents(path: Path) -> list[str]:
    text = path.read_text()
    return text.splitlines() if path.suffix == ".jsonl" else [text]


def _timeless(name: str, array: np.ndarray) -> bytes:
    if name == "work":  # a row a step: iterations, milliseconds, energies
        array = array[:, [0, *range(array.shape[1] - 8, array.shape[1])]]
    return array.tobytes()


def _bare(value):
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if not k.endswith(CLOCKS)}
    return value


@pytest.fixture(scope="module", params=["simulate", "reconstruct"])
def whole(request, tmp_path_factory):
    """The uninterrupted one: (kind, scene, folder, seconds it took)."""
    folder = tmp_path_factory.mktemp(request.param)
    scene = folder / "bar.toml"
    scene.write_text(tomli_w.dumps(BAR))
    began = time.monotonic()
    subprocess.run(words(request.param, scene, folder / "whole"), check=True, capture_output=True)
    return request.param, scene, folder / "whole", time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_and_resumed(whole, seed):
    kind, scene, expected, seconds = whole
    rng = np.random.default_rng(seed)
    out = expected.parent / f"killed {seed}"
    child = subprocess.Popen(words(kind, scene, out), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)  # fmt: skip
    time.sleep(float(rng.uniform(0.1, 0.95)) * seconds)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    subprocess.run(words(kind, scene, out), check=True, capture_output=True)
    one, other = contents(expected), contents(out)
    assert set(one) == set(other)
    for name, held in one.items():
        assert held == other[name], name


def test_the_bar_has_a_past():
    """A body too small for a hierarchy of grids would prove little."""
    from pliant.app.describing.scene_files import build_scene

    assert len(build_scene(BAR).body.nodes) >= SMALL_BODY
