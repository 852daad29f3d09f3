"""`pliant fit-curve`."""

import json
import tomllib

import numpy as np
import pytest
from command_line import in_process, pliant

from pliant.fem.laws import LAWS
from pliant.fem.laws.specimen import Specimen
from pliant.fem.laws.tables import law_of

TRUTH = {"c1": 2e5, "c2": -1e3, "c3": 30.0, "kappa": 1e9}


@pytest.fixture
def files(tmp_path):
    """A Yeoh rubber in two machines, in MPa, columns in either order."""
    out = []
    for name, kind, turn in (("gum_UT.txt", "uniaxial", 1), ("gum_PS.csv", "pure-shear", -1)):
        l = np.linspace(1.05, 4.0, 20)
        P = Specimen(LAWS["yeoh"]).respond(kind, l, TRUTH).stress / 1e6
        path = tmp_path / name
        np.savetxt(path, np.stack([l, P], axis=1)[:, ::turn], delimiter=", "[turn < 0 :][:1])
        out.append(path)
    return out


def test_files_and_json(files, tmp_path, capfd, monkeypatch):
    out = tmp_path / "fit"
    code, text, _ = in_process(
        capfd, monkeypatch, "fit-curve", *files, "--units", "MPa", "--materials",
        "yeoh,neo-hookean", "--out", out, "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(text)
    assert result["best"] == "yeoh"
    assert [c["loading"] for c in result["curves"]] == ["uniaxial", "pure-shear"]
    found = result["materials"][0]["parameters"]
    assert {n: found[n]["value"] for n in ("c1", "c2", "c3")} == pytest.approx(
        {n: TRUTH[n] for n in ("c1", "c2", "c3")}, rel=1e-6
    )
    assert found["kappa"]["sigma"] is None
    assert "not seen" in found["kappa"]["remark"]
    assert result["materials"][0]["youngs_modulus"] == pytest.approx(6 * TRUTH["c1"], rel=1e-6)
    assert (out / "curves.png").stat().st_size > 10_000
    assert json.loads((out / "fit.json").read_text()) == result
    law = law_of(tomllib.loads((out / "law.toml").read_text())["law"])
    assert law.values["c1"] == pytest.approx(TRUTH["c1"], rel=1e-6)


def test_text_as_a_person_runs_it(files):
    done = pliant("fit-curve", files[0], "--units", "MPa", "--materials", "neo-hookean,yeoh")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("error: relative, 2 %")
    assert lines[3].startswith("yeoh")
    assert "c1      200 +- " in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none_UT.txt"], "none_UT.txt: there is no such file"),
        (["{0}"], "unit of the stress is not stated"),
        (["{0}", "--units", "MPa", "--materials", "yeho"], "no law called 'yeho'"),
        (["{0}", "--units", "MPa", "--loading", "uniaxial,ps"], "2 kinds for 1 files"),
        (["{0}", "--units", "MPa", "--out", "{0}"], "is a file; --out needs a folder"),
        (["{0}", "--units", "MPa", "--error", "0%"], "must be positive"),
        ([], "FILE"),
    ],
)
def test_bad_input_is_one_sentence(files, capfd, monkeypatch, arguments, words):
    arguments = [a.format(*files) for a in arguments]
    code, out, said = in_process(capfd, monkeypatch, "fit-curve", *arguments)
    assert code == 2
    assert out == ""
    assert words in said
    assert len(said.splitlines()) == 1
