"""Thousands of bad inputs: each is refused with a sentence, quickly, and leaves nothing behind.

A tenth of them, drawn once, is part of every test run; `make hostile` tries them all.
"""

import random
from collections import Counter

import pytest
from hostile_case import REFUSED, Case, judge
from hostile_fields import field_cases
from hostile_folders import folder_cases
from hostile_meshes import ball, mesh_cases
from hostile_options import option_cases
from hostile_recordings import recording_cases
from hostile_scenes import scene_cases
from hostile_templates import templates

from pliant.geometry.load import load_shape

CASES = [
    *scene_cases(), *mesh_cases(), *field_cases(), *recording_cases(), *folder_cases(),
    *option_cases(),
]  # fmt: skip
TENTH = random.Random(17).sample(CASES, len(CASES) // 10)


def name_of(case: Case) -> str:
    return case.name.encode("ascii", "backslashreplace").decode()[:80]


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Kernels that have to be compiled first are not a bad input's fault."""
    place = templates() / "ball.ply"
    place.write_bytes(ball("ply"))
    load_shape(place).distance([[0.0, 0.0, 0.0]])


@pytest.mark.parametrize("case", TENTH, ids=name_of)
def test_a_tenth_of_the_bad_inputs(case, tmp_path):
    assert judge(case, tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_all_bad_inputs(case, tmp_path):
    assert judge(case, tmp_path) == ""


def test_there_are_enough_and_each_is_another():
    assert Counter(case.expected for case in CASES)[REFUSED] > 4000
    names = Counter(case.name for case in CASES)
    assert [name for name, count in names.items() if count > 1] == []


def test_the_judge_sees_what_is_wrong(tmp_path):
    """Each of the ways to fail is noticed."""

    def crash():
        raise ValueError("no sentence")

    def litter():
        (tmp_path / "half").touch()
        from pliant.core.errors import BadInput

        raise BadInput("No.")

    for action, said in ((crash, "traceback"), (lambda: None, "expected to be refused"),
                         (litter, "left ['half'] behind")):  # fmt: skip
        assert said in judge(Case("bad", lambda folder, a=action: a), tmp_path)
