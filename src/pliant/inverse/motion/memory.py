"""What a fit computed before it was interrupted, so that it takes the same way again, quicker.

A simulation gives the same bits every time, so the questions of a fit and their order are the same
when it is begun again: each is answered from memory as long as there is an answer, and no state of
any optimiser needs to be kept. A question is its digest: what is asked, of which unknowns, where.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from pliant.inverse.measuring.measures import FrameMisfit

Answer = dict[str, np.ndarray]


class Memory(Protocol):
    """Answers in the order in which they were given."""

    def recall(self, question: str) -> Mapping[str, np.ndarray] | None:
        """The next answer, if it is one to this question: one that fails has none."""
        ...

    def keep(self, question: str, answer: Mapping[str, np.ndarray]) -> None:
        """The answer to the question just asked, in place of all that followed the last one."""
        ...


def remembered(
    memory: Memory | None, what: tuple[Any, ...], compute: Callable[[], Answer]
) -> Mapping[str, np.ndarray]:
    """The answer to `what`, from memory or computed; arrays count by their bits."""
    if memory is None:
        return compute()
    digest = hashlib.sha256()
    for part in what:
        array = isinstance(part, np.ndarray)
        digest.update(np.ascontiguousarray(part).tobytes() if array else repr(part).encode())
        digest.update(b"|")
    question = digest.hexdigest()
    answer = memory.recall(question)
    if answer is None:
        answer = compute()
        memory.keep(question, answer)
    return answer


def packed(frames: Mapping[int, FrameMisfit]) -> Answer:
    """The misfit of frames as four arrays."""
    found = list(frames.values())
    p = found[0].J.shape[1] if found else 0
    return {
        "frames": np.array([(k, len(f.r)) for k, f in frames.items()], np.int64).reshape(-1, 2),
        "r": np.concatenate([np.zeros(0), *(f.r for f in found)]),
        "J": np.concatenate([np.zeros((0, p)), *(f.J for f in found)]),
        "usable": np.concatenate([np.zeros(0, bool), *(f.usable for f in found)]).astype(float),
    }


def unpacked(answer: Mapping[str, np.ndarray]) -> dict[int, FrameMisfit]:
    """The inverse of `packed`."""
    out, first = {}, 0
    for k, count in answer["frames"].tolist():
        own = slice(first, first + count)
        out[k] = FrameMisfit(answer["r"][own], answer["J"][own], answer["usable"][own] > 0.0)
        first += count
    return out
