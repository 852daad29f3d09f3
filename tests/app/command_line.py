import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w

ROOT = Path(__file__).parents[2]

BLOCK = {
    "title": "block",
    "steps": 6,
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.5, 0.5]},
    "body": {"kind": "grid", "spacing": 0.25},
    "material": {"youngs_modulus": 500.0, "mass_damping": 0.1, "stiffness_damping": 0.01},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
}
"""Sixteen cells held at one end."""


def block(**changes) -> dict:
    """A copy with some tables replaced."""
    return copy.deepcopy(BLOCK) | changes


def write(path: Path, description: dict) -> Path:
    path.write_text(tomli_w.dumps(description))
    return path


def pliant(*arguments, check: int | None = 0, cwd=None, **env) -> subprocess.CompletedProcess:
    """Run the command line as a person does."""
    done = subprocess.run(
        [sys.executable, "-m", "pliant", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, timeout=120, env=os.environ | env,
    )  # fmt: skip
    assert check is None or done.returncode == check, done.stderr
    return done


def in_process(capfd, monkeypatch, *arguments) -> tuple[int, str, str]:
    """The same without a new interpreter: exit code, standard output, standard error."""
    from pliant.app import cli

    monkeypatch.setattr(sys, "argv", ["pliant", *map(str, arguments)])
    capfd.readouterr()
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capfd.readouterr()
    return int(stop.value.code or 0), out, err
