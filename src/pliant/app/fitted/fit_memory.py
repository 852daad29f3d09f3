"""The simulations of a fit on disk while it runs, from which an interrupted one goes on."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import numpy as np

from pliant.app.folders.array_files import read_arrays, write_arrays
from pliant.core.errors import BadInput

FOLDER = "simulations"

MOST_BYTES = 2 * 1024**3
"""Of all answers: what comes after them is computed again. 200,000 pixels and two unknowns take
6 MB a simulation, so that this is some hundred of them."""


class FolderMemory:
    """Answers as numbered files; spent: seconds that those recalled took to compute."""

    def __init__(self, folder: Path):
        self.folder = folder / FOLDER
        self.spent = 0.0
        self._next, self._bytes = 0, 0
        self._asked = perf_counter()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npz"

    def recall(self, question: str) -> Mapping[str, np.ndarray] | None:
        """The next answer, if it is one to this question."""
        self._asked = perf_counter()
        path = self._path(self._next)
        if not path.is_file():
            return None
        try:
            answer = read_arrays(path)
        except BadInput:
            return None  # it is computed, and written, again
        if answer.pop("question", np.zeros(0)).tobytes().decode("ascii", "replace") != question:
            return None
        self._next += 1
        self._bytes += path.stat().st_size
        self.spent += float(answer.pop("seconds", np.zeros(1))[0])
        return answer

    def keep(self, question: str, answer: Mapping[str, np.ndarray]) -> None:
        """Write the answer in place of whatever followed the last one."""
        number = self._next
        while self._path(number).is_file():
            self._path(number).unlink()
            number += 1
        self._bytes += sum(array.nbytes for array in answer.values())
        if self._bytes > MOST_BYTES:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        write_arrays(
            self._path(self._next), **answer,
            question=np.frombuffer(question.encode("ascii"), np.uint8),
            seconds=np.array([perf_counter() - self._asked]),
        )  # fmt: skip
        self._next += 1

    def forget(self) -> None:
        """Remove it all."""
        with suppress(OSError):
            shutil.rmtree(self.folder)
