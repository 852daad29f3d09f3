"""What starting costs: which modules are loaded, what is said, and which clock stands still."""

import ast
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

import pliant as pl
from pliant.app.terminal import command_table
from pliant.core import compiling
from pliant.core.launch import launch, zeros

HEAVY = ("warp", "scipy", "numpy", "matplotlib", "trimesh", "meshio", "viser")


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
        env={**os.environ, **environment}, check=True,
    )  # fmt: skip


def program(folder: Path, code: str, cache: Path) -> subprocess.CompletedProcess:
    """Run a file (kernels need their source) with a kernel cache of its own."""
    path = folder / "program.py"
    path.write_text(code)
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "WARP_CACHE_PATH": str(cache)},
    )  # fmt: skip


def loaded_after(code: str) -> set[str]:
    """Heavy modules that are there after running some code in a new interpreter."""
    tail = "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    names = json.loads(python(code + tail).stdout.splitlines()[-1])
    return {name for name in names if name in HEAVY}


def test_import_loads_nothing_heavy():
    assert loaded_after("import pliant") == set()
    assert "warp" in loaded_after("import pliant; pliant.GridBody")  # so the probe can fail


@pytest.mark.parametrize("arguments", ["--version", "--help", "simulat"])
def test_the_command_line_loads_nothing_heavy(arguments):
    code = f"""
import sys
from pliant.app.cli import main
sys.argv = ["pliant", "{arguments}"]
try:
    main()
except SystemExit:
    pass
"""
    assert loaded_after(code) == set()


def test_every_public_name_is_there_however_it_is_asked_for():
    for name in pl.__all__:
        assert getattr(pl, name) is not None
    assert set(pl.__all__) <= set(dir(pl))
    code = "from pliant import *; import pliant; print(all(n in globals() for n in pliant.__all__))"
    assert python(code).stdout.strip() == "True"
    with pytest.raises(AttributeError, match="has no attribute 'Sceen'"):
        pl.Sceen  # noqa: B018


def test_a_folder_does_not_hide_the_function_of_its_name():
    code = "import pliant.observe.camera, pliant as pl; print(callable(pl.observe))"
    assert python(code).stdout.strip() == "True"


def test_type_checkers_see_the_names_that_are_imported():
    """The imports for editors and the table that is used name the same things."""
    tree = ast.parse(Path(pl.__file__).read_text(encoding="utf-8"))
    seen = {}
    for node in tree.body:
        if isinstance(node, ast.If):
            for line in (n for n in node.body if isinstance(n, ast.ImportFrom)):
                seen |= {alias.name: line.module for alias in line.names}
    modules = {name: f"pliant.{home}".rsplit(".", 1)[0] for name, home in pl._MODULES.items()}
    assert seen == modules | {name: f"pliant.{home}" for name, home in pl._HOME.items()}
    of_files = {"compress", "load_scene", "play"}  # whose formats are the app's
    assert {*seen, *of_files} == set(pl.__all__)


@pytest.mark.parametrize("name", command_table.COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name):
    own = " ".join(command_table.load(name).help.split("\n\n")[0].split())
    assert own == command_table.COMMANDS[name]


def test_every_command_is_in_the_list():
    folder = Path(command_table.__file__).parents[1] / "commands"
    modules = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--"}
    assert modules == set(command_table.COMMANDS)


def test_a_machine_without_a_gpu_is_not_lamented():
    said = python("import pliant as pl; pl.set_device('cpu'); pl.shapes.sphere(radius=1.0)")
    assert (said.stdout, said.stderr) == ("", "")


def test_a_cold_cache_is_announced_once(tmp_path):
    code = """
import numpy as np, warp as wp
from pliant.core.launch import launch, zeros
from pliant.core import compiling
import time

@wp.kernel
def fill(first: wp.int32, out: wp.array(dtype=wp.float64)):
    out[first + wp.tid()] = wp.float64(3.0)

@wp.kernel(module="unique")
def fill_again(first: wp.int32, out: wp.array(dtype=wp.float64)):
    out[first + wp.tid()] = wp.float64(4.0)

out = zeros(5, wp.float64)
t, w = time.perf_counter(), compiling.working_time()
launch(fill, 5, [out])
launch(fill_again, 5, [out])
t, w = time.perf_counter() - t, compiling.working_time() - w
print(t > 0.05, w < 0.5 * t)
"""
    runs = [program(tmp_path, code, tmp_path / "kernels") for _ in range(2)]
    assert runs[0].stderr.splitlines() == [compiling.MESSAGE]
    assert runs[0].stdout.split() == ["True", "True"]
    assert runs[1].stderr == ""


FILL = """
import warp as wp
from pliant.core.launch import launch, zeros

@wp.kernel
def fill(first: wp.int32, out: wp.array(dtype=wp.float64)):
    out[first + wp.tid()] = wp.float64(3.0)

out = zeros(5, wp.float64)
launch(fill, 5, [out])
print(out.numpy().tolist())
"""
FILLED = "[3.0, 3.0, 3.0, 3.0, 3.0]\n"


@pytest.mark.parametrize("left", [0.5])
def test_damaged_kernels_are_compiled_again(tmp_path, left):
    """Loading them as they are would end the process by a signal."""
    cache = tmp_path / "kernels"
    assert program(tmp_path, FILL, cache).stdout == FILLED
    (code,) = (p for p in cache.rglob("*.o") if "program" in str(p) or "main" in str(p))
    whole = code.read_bytes()
    code.write_bytes(whole[: int(left * len(whole))])
    again = program(tmp_path, FILL, cache)
    assert (again.returncode, again.stdout) == (0, FILLED)
    assert again.stderr == f"{compiling.MESSAGE}\n"
    assert program(tmp_path, FILL, cache).stderr == ""


def test_a_cache_that_cannot_be_written(tmp_path):
    """A file in its place: a temporary folder, a hint, and nothing left behind."""
    (tmp_path / "kernels").touch()
    (tmp_path / "tmp").mkdir()
    code = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'tmp')!r}\n" + FILL
    done = program(tmp_path, code, tmp_path / "kernels")
    assert done.stdout == FILLED
    assert "cannot be written" in done.stderr
    assert "WARP_CACHE_PATH" in done.stderr
    assert not any((tmp_path / "tmp").iterdir())


@wp.kernel(module="unique")
def twice(first: wp.int32, out: wp.array(dtype=wp.float64)):
    i = first + wp.tid()
    out[i] = out[i] + out[i]


def test_the_announcement_is_a_log_record(caplog, monkeypatch):
    """A program that wants it elsewhere takes it from the logger."""
    monkeypatch.setattr(compiling, "_announced", False)
    monkeypatch.setattr(compiling, "is_compiled", lambda kernel, device: False)
    with caplog.at_level(logging.WARNING):
        launch(twice, 3, [zeros(3, wp.float64)])
    assert [r.getMessage() for r in caplog.records] == [compiling.MESSAGE]
