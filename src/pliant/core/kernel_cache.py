"""Where compiled kernels are kept, and whether what lies there is whole.

A module's folder in Warp's cache gets a seal, the sizes and digests of its files. Code that a full
disk or a crash has cut off would end the process without a word when it is loaded; where the seal
does not fit, the folder is removed and the module compiled again.
"""

import atexit
import hashlib
import json
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import warp as wp

log = logging.getLogger(__name__)

SEAL = "pliant-seal.json"

CPU_BLOCK = 1
"""Warp compiles for the CPU with blocks of one thread, whatever a module asks for on CUDA."""

_checked: set[Path] = set()


def require_writable() -> None:
    """After Warp's start: a folder of this process alone where the cache cannot be written."""
    place = Path(wp.config.kernel_cache_dir or "")
    if os.access(place, os.W_OK) or (place.is_dir() and any(place.iterdir())):
        return  # a cache that was filled beforehand may be read only
    use_temporary_cache(str(place))


def use_temporary_cache(instead_of: str) -> None:
    """Keep kernels in a folder that is removed when the process ends, and say so."""
    place = tempfile.mkdtemp(prefix="pliant-kernels-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    wp.config.kernel_cache_dir = place
    log.warning(
        "%s cannot be written: kernels are compiled for this run alone. Set WARP_CACHE_PATH to a "
        "folder of yours to keep them.", instead_of,
    )  # fmt: skip


def module_folder(kernel: Any, device: str) -> Path:
    """Where the kernel's module, as it is now, lies or will lie."""
    block = CPU_BLOCK if device == "cpu" else None
    return Path(wp.config.kernel_cache_dir or "") / kernel.module.get_module_identifier(block)


def is_compiled(kernel: Any, device: str) -> bool:
    """True if the kernel's module is on disk, whole; what is not whole is removed."""
    place = module_folder(kernel, device)
    if place in _checked:
        return True
    if not place.is_dir():
        return False
    if _fits(place):
        _checked.add(place)
        return True
    shutil.rmtree(place, ignore_errors=True)
    return False


def seal(kernel: Any, device: str) -> None:
    """Note what the kernel's module, just compiled or never sealed before, consists of."""
    place = module_folder(kernel, device)
    if place in _checked and (place / SEAL).is_file():
        return
    _checked.add(place)
    try:
        beside = place / f"{SEAL}.{os.getpid()}"
        beside.write_text(json.dumps(_contents(place)), encoding="utf-8")
        beside.replace(place / SEAL)
    except OSError:
        return  # a cache that may only be read


def _fits(place: Path) -> bool:
    """True if a folder is what its seal says, or has none."""
    try:
        text = (place / SEAL).read_text(encoding="utf-8")
    except OSError:
        return True
    try:
        return json.loads(text).items() <= _contents(place).items()
    except (ValueError, AttributeError, OSError):
        return False


def _contents(place: Path) -> dict[str, str]:
    """Digests of what is loaded: machine code and its description, not the sources."""
    found = {}
    for path in sorted(place.iterdir()):
        if path.suffix in (".o", ".cubin", ".ptx", ".meta"):
            with path.open("rb") as stream:
                found[path.name] = hashlib.file_digest(stream, "blake2b").hexdigest()
    return found
