"""What layers above enter for those below: loaded when it is first asked for, and not before.

A layer cannot import what lies above it, and the package must start without loading everything. So
the package, which stands above all layers, says here who enters what (`provide`), and whoever reads
a register calls `load` before.
"""

from collections.abc import Callable

_loaders: dict[str, list[Callable[[], object]]] = {}


def provide(what: str, enter: Callable[[], object]) -> None:
    """`enter` adds to the register `what`; it is called once, when that is first read."""
    _loaders.setdefault(what, []).append(enter)


def load(what: str) -> None:
    """Let everyone enter who has something for this register."""
    waiting = _loaders.get(what, [])
    while waiting:
        waiting.pop(0)()
