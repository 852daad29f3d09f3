"""One thread a test process where several run side by side: threads of two would share a core.

Tests about threads set their number themselves.
"""

import os

from recordings import seen  # noqa: F401
from simplex_bodies import ball, brick, disc  # noqa: F401

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("PLIANT_THREADS", "1")
