"""Files of test machines: columns, units, loadings, and what is wrong in one sentence."""

import numpy as np
import pytest

import pliant as pl

ROWS = [(1.1, 0.2), (1.5, 0.6), (2.0, 0.9)]


def written(tmp_path, text, name="rubber_UT.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(rows, mark=" ", head=""):
    return head + "\n".join(mark.join(f"{x:g}" for x in row) for row in rows) + "\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (lines(ROWS), {"units": "MPa"}),
        (lines([r[::-1] for r in ROWS]), {"units": "MPa"}),
        (lines(ROWS, ","), {"units": "kgf/cm2"}),
        (lines([r[::-1] for r in ROWS], "\t", "Stress [MPa]\tStretch\n"), {}),
        (lines(ROWS, ";").replace(".", ","), {"units": "N/mm2"}),
        (lines([(100 * (a - 1), b) for a, b in ROWS], ",", "strain (%),stress (MPa)\n"), {}),
        (lines([(a - 1, b) for a, b in ROWS]), {"units": "MPa", "columns": "strain,stress"}),
        (lines([(k, b, a) for k, (a, b) in enumerate(ROWS)], ",", "time,stress,stretch\n"),
         {"units": "MPa"}),
        (lines([(k, b, a) for k, (a, b) in enumerate(ROWS)]),
         {"units": "MPa", "columns": "-,stress,stretch"}),
        ("# a comment\n\nMachine 7\n" + lines(ROWS, ",", "lambda,P (kPa)\n"), {"units": "MPa"}),
    ],
)  # fmt: skip
def test_columns(tmp_path, text, options):
    curve = pl.load_curve(written(tmp_path, text), **options)
    factor = 98066.5 if options.get("units") == "kgf/cm2" else 1e6
    assert curve.loading == "uniaxial"
    assert curve.stretch == pytest.approx([1.1, 1.5, 2.0])
    assert curve.stress == pytest.approx(factor * np.array([0.2, 0.6, 0.9]))


@pytest.mark.parametrize(
    ("name", "loading"),
    [("Treloar_1944_ET.txt", "equibiaxial"), ("x-PS.csv", "pure-shear"), ("ut.csv", "uniaxial"),
     ("my pure_shear 3.csv", "pure-shear"), ("equibiaxial2.dat", "equibiaxial")],
)  # fmt: skip
def test_loading_by_name(tmp_path, name, loading):
    assert pl.load_curve(written(tmp_path, lines(ROWS), name), units="MPa").loading == loading


def test_loading_by_word(tmp_path):
    path = written(tmp_path, lines(ROWS))
    assert pl.load_curve(path, loading="PS", units="MPa").loading == "pure-shear"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (lines(ROWS), {}, "unit of the stress is not stated"),
        (lines(ROWS), {"units": "bananas"}, "units must be one of"),
        (lines(ROWS), {"units": "MPa", "loading": "twist"}, "not 'twist'"),
        ("", {"units": "MPa"}, "holds no numbers"),
        ("1\n2\n", {"units": "MPa"}, "one column"),
        ("1.1 2 3\n", {"units": "MPa"}, "3 columns without names"),
        ("1.1 2\n1.2 3 4\n", {"units": "MPa"}, "line 2 has 3 columns"),
        ("1.1 2\n1.2 many\n", {"units": "MPa"}, "line 2 is not a row"),
        ("1.1 2\n1.2 nan\n", {"units": "MPa"}, "line 2 holds a number that is not finite"),
        ("1.1 1.2\n1.5 1.6\n", {"units": "MPa"}, "do not tell the stretch from the stress"),
        ("a,b\n1.1,0.2\n", {"units": "MPa"}, "which column is the stretch"),
        ("stretch,true stress\n1.1,2\n", {"units": "MPa"}, "true stress or strain"),
        ("1.1 2\n1.2 3\n", {"units": "MPa", "columns": "stress,force"}, "'force' is not one of"),
        ("1.1 2\n1.2 3\n", {"units": "MPa", "columns": "stress,stress"}, "must name the stress"),
        ("1.1 2\n1.2 3\n", {"units": "MPa", "columns": "-,-,stress,stretch"}, "names 4 columns"),
        ("-0.1 2\n0.2 3\n", {"units": "MPa", "columns": "stretch,stress"}, "hold"),
        ("1.1 0.2\n", {"units": "MPa"}, "two points or more"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path, text, options, words):
    with pytest.raises(pl.BadInput, match=words):
        pl.load_curve(written(tmp_path, text), **options)


def test_names_that_do_not_say(tmp_path):
    for name in ("rubber.txt", "UT_PS.txt"):
        with pytest.raises(pl.BadInput, match=f"{name}.*give --loading"):
            pl.load_curve(written(tmp_path, lines(ROWS), name), units="MPa")
    with pytest.raises(pl.BadInput, match="no such file"):
        pl.load_curve(tmp_path / "none_UT.txt", units="MPa")


def test_a_missing_file_is_missing_whatever_its_name(tmp_path):
    with pytest.raises(pl.BadInput, match="no such file"):
        pl.load_curve(tmp_path / "nothing.txt")
