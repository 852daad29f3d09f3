"""How the tests share the cores.

One thread a test process where several run side by side: threads of two would share a core. Tests
about threads set their number themselves. Files of few but long tests come first, or the last of
them would keep one core busy and the other waiting.
"""

import os

from recordings import seen  # noqa: F401
from simplex_bodies import ball, brick, disc  # noqa: F401

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("PLIANT_THREADS", "1")

LONG = (
    "test_editor_page", "test_cuda_compiles", "test_determinism", "test_memory", "test_law_cuda",
    "test_results_page", "test_foreign_pages", "test_reconstruct", "test_laws",
)  # fmt: skip
"""Files that take half a minute or more, the longest first."""


def pytest_collection_modifyitems(items):
    """Long files first."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))
