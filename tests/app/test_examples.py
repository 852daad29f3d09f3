"""The examples run, and find the number they knew beforehand."""

import ast
import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # what an example writes is not ours to keep
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_the_notebook_runs():
    """Its code cells, one after the other, without Jupyter; the last value of each can be shown."""
    notebook = json.loads((EXAMPLES[0].parent / "first_steps.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    names: dict = {}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "first_steps.ipynb", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    assert "<table>" in shown[0]._repr_html_()
    assert sum(hasattr(value, "_repr_png_") for value in shown) == 2


def test_there_are_examples():
    assert [int(p.stem[:2]) for p in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))
    assert len(EXAMPLES) >= 8
    for path in EXAMPLES:
        assert "\nassert " in path.read_text(encoding="utf-8"), path
