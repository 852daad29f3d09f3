"""However a command ends, there is one sentence, and no file or folder that only looks finished."""

import json
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import block, in_process, pliant, write

from pliant.app.commands import scenes
from pliant.app.fitted import fits
from pliant.core.errors import BadInput
from pliant.observe.observations import Observations


def test_a_defect_is_one_sentence_and_a_report(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def broken():
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr(scenes, "scene_names", broken)
    code, out, err = in_process(capfd, monkeypatch, "scenes")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert "mistake in Pliant (RuntimeError: out of)" in err
    (report,) = tmp_path.glob("pliant-report-*.txt")
    assert str(report) in err
    assert "Traceback" in report.read_text()
    assert "'scenes'" in report.read_text()


def test_names_cannot_steer_the_terminal(capfd, monkeypatch):
    code, _, err = in_process(capfd, monkeypatch, "simulate", "\x1b]0;hi\x07\u202e.toml")
    assert code == 2
    assert r"\x1b]0;hi\x07\u202e.toml" in err
    assert err.strip().isprintable()


@pytest.mark.parametrize(
    ("words", "redirected", "code"),
    [("scenes", ">&-", 0), ("scenes", "2>&-", 0), ("scenes nothing", "2>&-", 2),
     ("scenes nothing", ">&- 2>&-", 2), ("scenes", ">/dev/full", 2), ("--help", ">/dev/full", 2)],
)  # fmt: skip
def test_outputs_that_are_closed_or_full(words, redirected, code):
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m pliant {words} {redirected}"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr


def start(code: str) -> subprocess.Popen:
    """A program that says so when it has begun."""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # a shell's background jobs, these tests among them, start without ears for Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    return child


@pytest.mark.parametrize("after", [0.0, 0.4])
def test_ctrl_c_in_the_first_second(after, tmp_path):
    child = start(
        "import sys\nfrom pliant.app import cli\nrun = cli._run\n"
        "def begin(words):\n"  # from here on, what happens is told by the entry point
        "    print('begun', flush=True); return run(words)\n"
        f"sys.argv = ['pliant', 'simulate', 'bar', '--out', {str(tmp_path / 'run')!r}]\n"
        "cli._run = begin\ncli.main()"
    )
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("pliant: Interrupted")


@pytest.mark.parametrize("command", ["observe", "export", "landscape", "reconstruct"])
def test_ctrl_c_while_a_scene_is_filmed(command, tmp_path, capfd, monkeypatch):
    """It was told as a failure of the solver, with its exit code."""
    from pliant.app.terminal.progress import Progress

    def pressed(self, done, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "reach", pressed)
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path / "block.toml", block())
    code, out, err = in_process(capfd, monkeypatch, command, file, "--out", tmp_path / "x.glb")
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "pliant: Interrupted."
    assert [p.name for p in tmp_path.iterdir()] == ["block.toml"]


def test_sigterm_removes_temporary_files(tmp_path):
    child = start(
        "import time\nfrom pliant.app import cli\nfrom pliant.core.files import whole_file\n"
        "def run(words):\n"
        f"    with whole_file({str(tmp_path / 'final.png')!r}) as path:\n"
        "        path.write_bytes(b'half')\n"
        "        print('begun', flush=True); time.sleep(60)\n"
        "cli._run = run\ncli.main()"
    )
    assert len(list(tmp_path.iterdir())) == 1
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


@contextmanager
def small_disk(size: int):
    """No file may become larger, as if there was no room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def simulate(tmp_path, capfd, monkeypatch):
    file = write(tmp_path / "scene.toml", block())

    def run(*words):
        return in_process(
            capfd, monkeypatch, "simulate", file, "--out", tmp_path / "run", "--no-pictures", *words
        )

    return run


def status(folder: Path) -> str:
    return json.loads((folder / "result.json").read_text())["status"]


def test_a_disk_that_is_full_from_the_start(tmp_path, simulate):
    with small_disk(1500):
        code, _, err = simulate()
    assert (code, err.count("\n")) == (2, 1)
    assert "File too large" in err
    assert not (tmp_path / "run").exists()


def test_a_disk_that_fills_up(tmp_path, simulate):
    """What was computed stays, its status says that it is not all, and it can be gone on with."""
    with small_disk(6000):
        code, _, err = simulate()
    assert code == 2
    assert "frame_" in err
    assert status(tmp_path / "run") == "failed"
    assert not list((tmp_path / "run").rglob(".*"))
    code, _, _ = simulate()
    assert (code, status(tmp_path / "run")) == (0, "finished")


def test_a_fit_that_is_refused_leaves_nothing(tmp_path, capfd, monkeypatch):
    write(tmp_path / "scene.toml", block())

    def refuse(*_, **__):
        raise BadInput("The points are not of this body.")

    monkeypatch.setattr(fits, "reconstruct", refuse)
    monkeypatch.setattr(
        "pliant.app.fitted.fit_command._filmed", lambda *_: Observations([], [], None)
    )
    code, _, err = in_process(
        capfd, monkeypatch, "reconstruct", tmp_path / "scene.toml", "--out", tmp_path / "a" / "fit"
    )
    assert (code, err) == (2, "pliant: The points are not of this body.\n")
    assert [p.name for p in tmp_path.iterdir()] == ["scene.toml"]


def test_a_fit_that_is_refused_later_says_so(tmp_path, capfd, monkeypatch):
    """One that has made steps is kept."""
    write(tmp_path / "scene.toml", block())

    def refuse(scene, seen, starts, *, on_step, **_):
        on_step(fits.Step(0, 3, 1.0, 0.1, {"youngs_modulus": 500.0}, ""))
        raise BadInput("No room.")

    monkeypatch.setattr(fits, "reconstruct", refuse)
    monkeypatch.setattr(
        "pliant.app.fitted.fit_command._filmed", lambda *_: Observations([], [], None)
    )
    code, _, _ = in_process(
        capfd, monkeypatch, "reconstruct", tmp_path / "scene.toml", "--out", tmp_path / "fit"
    )
    assert code == 2
    assert status(tmp_path / "fit") == "failed"


def test_threads_beyond_the_cores(tmp_path):
    scene = write(tmp_path / "scene.toml", block(steps=1))
    pliant("simulate", scene, "--out", tmp_path / "run", "--no-pictures", "--threads", "1000000")
