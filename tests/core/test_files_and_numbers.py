"""What a person or a file may give: numbers of a usable size, regular files of a bounded size."""

import os
import time

import pytest

from pliant.core.errors import BadInput
from pliant.core.files import read_bytes, read_json, read_toml
from pliant.core.numbers import LARGEST, SMALLEST, number, positive, require_plain, shown


@pytest.mark.parametrize("value", [1, -2.5, 0.0, LARGEST, -LARGEST, 5e-324])
def test_numbers(value):
    assert number("x", "y", value) == value


@pytest.mark.parametrize(
    "value",
    [True, "1", None, float("nan"), float("inf"), 1.01e30, 10**400, 10**5000, [1.0], 1j],
    ids=shown,
)
def test_no_numbers(value):
    with pytest.raises(BadInput, match="x: y must be"):
        number("x", "y", value)


@pytest.mark.parametrize("value", [0.0, -1.0, 0.99e-30])
def test_not_positive(value):
    assert positive("x", "y", SMALLEST) == SMALLEST
    with pytest.raises(BadInput, match="x: y must be"):
        positive("x", "y", value)


def test_values_in_messages_are_short():
    assert shown(3) == "3"
    assert shown(10**5000) == "a whole number of 16610 bits"
    assert len(shown("x" * 10**6)) == 60


def test_plain_values():
    require_plain({"a": [1, 2.5, "x", {"b": True}]}, deepest=4)
    for value, said in (
        ({"a": [1, {"b": float("nan")}]}, r"a\[1\]\.b: it must be a finite number, not nan"),
        ({"a": 2**63}, "a: a whole number of 64 bits cannot be used"),
        ([[[[[]]]]], "nested too deeply"),
    ):
        with pytest.raises(BadInput, match=said):
            require_plain(value, deepest=4)


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, said in (("pipe", "pipe or a device"), ("zero", "pipe or a device"),
                       (".", "folder"), ("none", "no such file"), ("a\0b", "no such")):  # fmt: skip
        with pytest.raises(BadInput, match=said):
            read_bytes(tmp_path / name, limit=1000)
    (tmp_path / "long").write_bytes(bytes(1001))
    with pytest.raises(BadInput, match="larger than"):
        read_bytes(tmp_path / "long", limit=1000)


def test_a_key_of_many_dots_takes_no_time(tmp_path):
    path = tmp_path / "a.toml"
    for text in ("a" + ".a" * 100_000 + " = 1\n", "b = {a" + ".a" * 100_000 + " = 1}\n"):
        path.write_text(text)
        begun = time.process_time()
        with pytest.raises(BadInput, match="nested too deeply"):
            read_toml(path)
        assert time.process_time() - begun < 2.0


def test_a_long_list_of_numbers_is_no_key(tmp_path):
    """Half a million moduli may stand in one line, and so may a text with dots."""
    path = tmp_path / "a.toml"
    path.write_text(f"a = [{', '.join(['1.5'] * 100_000)}]\nb = '{'.' * 2000}'\n")
    found = read_toml(path)
    assert (len(found["a"]), len(found["b"])) == (100_000, 2000)


def test_json_is_finite(tmp_path):
    path = tmp_path / "a.json"
    for text in ("[NaN]", "[1e400]", f"[{'9' * 5000}]", "[" * 10**5, "[Infinity]"):
        path.write_text(text)
        with pytest.raises(BadInput, match="a.json"):
            read_json(path)
