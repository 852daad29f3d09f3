"""`pliant compare`."""

import json

import pytest
from command_line import block, in_process, write


def test_files_and_table(tmp_path, capfd, monkeypatch):
    path, out = write(tmp_path / "block.toml", block()), tmp_path / "out"
    code, text, _ = in_process(
        capfd, monkeypatch, "compare", path, "--models", "position-based,shape-matching",
        "--steps", "6", "--out", out, "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(text)
    rows = {row["model"]: row for row in result["models"]}
    assert list(rows) == ["corotated", "position-based", "shape-matching"]
    assert rows["corotated"]["share"] == 0.0
    assert rows["corotated"]["tip_largest"] == pytest.approx(max(rows["corotated"]["tip"]))
    for row in rows.values():
        assert row["stopped"] is None
        assert len(row["tip"]) == len(row["energies"]["elastic"]) == 7
        assert row["step_ms"] > 0.0
    assert 0.0 < rows["position-based"]["share"] < 0.3
    assert json.loads((out / "compare.json").read_text()) == result
    assert (out / "compare.png").stat().st_size > 10_000
    assert (out / "compare.gif").stat().st_size > 10_000


def test_an_unknown_model_is_named(tmp_path, capfd, monkeypatch):
    path = write(tmp_path / "block.toml", block())
    code, _, said = in_process(capfd, monkeypatch, "compare", path, "--models", "jelly")
    assert code == 2
    assert "no model 'jelly'" in said
