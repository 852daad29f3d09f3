import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def data():
    """Folder of scanned meshes and fields, shared between checkouts."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("PLIANT_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder} (set PLIANT_DATA)")
    return folder
