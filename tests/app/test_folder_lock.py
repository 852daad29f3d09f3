"""Two processes in one folder: the second is refused, a dead one holds nobody up."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command_line import block, pliant, write

from pliant.app.folders.folder_lock import LOCK, held, hold, lets_go
from pliant.core.errors import BadInput

HOLDER = """
import sys, time
from pathlib import Path
from pliant.app.folders.folder_lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that works in tmp_path / run."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait()


def test_the_second_is_refused(tmp_path, holder):
    with pytest.raises(BadInput, match=f"another process \\(number {holder.pid}\\) is working"):
        with held(tmp_path / "run"):
            pass
    scene = write(tmp_path / "scene.toml", block())
    for command in ("simulate", "reconstruct"):
        done = pliant(command, scene, "--out", tmp_path / "run", check=2)
        assert "is working there" in done.stderr
        assert done.stderr.count("\n") == 1
    assert [p.name for p in (tmp_path / "run").iterdir()] == [LOCK]


def test_a_dead_process_holds_nobody_up(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run" / LOCK).is_file()
    scene = write(tmp_path / "scene.toml", block())
    pliant("simulate", scene, "--out", tmp_path / "run", "--no-pictures")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["status"] == "finished"
    assert not (tmp_path / "run" / LOCK).exists()


def test_two_simulations_at_once(tmp_path):
    """One finishes its run, the other says why not; the states are of one scene."""
    scenes = [write(tmp_path / f"{E}.toml", block(steps=60, material={"youngs_modulus": E}))
              for E in (500.0, 900.0)]  # fmt: skip
    arguments = ["--out", str(tmp_path / "run"), "--no-pictures"]
    both = [
        subprocess.Popen([sys.executable, "-m", "pliant", "simulate", str(s), *arguments],
                         stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for s in scenes
    ]  # fmt: skip
    said = [p.communicate(timeout=120)[1] for p in both]
    codes = [p.returncode for p in both]
    assert sorted(codes) == [0, 2], said
    refusal = said[codes.index(2)]
    assert "is working there" in refusal or "holds a run of another scene" in refusal


def test_what_comes_to_nothing_leaves_nothing(tmp_path):
    place = tmp_path / "a" / "b"
    with held(place):
        assert (place / LOCK).is_file()
    assert not (tmp_path / "a").exists()
    with held(place):
        (place / "kept").touch()
    assert [p.name for p in place.iterdir()] == ["kept"]


def test_a_function_lets_go_however_it_ends(tmp_path):
    @lets_go
    def work(fail):
        hold(tmp_path)
        if fail:
            raise ValueError("no")
        return time.monotonic()

    work(False)
    with pytest.raises(ValueError, match="no"):
        work(True)
    assert work(False) > 0
    assert not (tmp_path / LOCK).exists()


def test_a_link_in_the_locks_place_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(BadInput, match="cannot be written"), held(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_what_a_killed_process_leaves_is_taken_over(tmp_path):
    """As it began, and in the middle of a file: neither is in the way of the next one."""
    out = tmp_path / "run"
    (out / "trajectory").mkdir(parents=True)
    (out / ".pliant-lock").touch()
    (out / ".scene.pliant-ab12.toml").write_text("hal")
    (out / "trajectory" / ".state_000001.pliant-cd34.npz").write_bytes(b"hal")
    scene = write(tmp_path / "block.toml", block(steps=1))
    pliant("simulate", scene, "--out", out, "--no-pictures")
    assert not [p for p in out.rglob(".*")]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    done = pliant("simulate", scene, "--out", tmp_path / "other", "--no-pictures", check=2)
    assert "holds no run" in done.stderr
