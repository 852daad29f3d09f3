"""What a person sees of records: figures, HTML in notebooks, bars of progress.

Records of all layers can be looked at, and only the app draws. So a record asks here by name, and
the app has entered its functions under these names; they are loaded when first asked for, by
whatever `provide` was given (the package itself, which stands above all layers).
"""

from collections.abc import Callable
from typing import Any, TypeVar

from pliant.core.errors import PliantError

F = TypeVar("F", bound=Callable[..., Any])

_views: dict[str, Callable[..., Any]] = {}
_loaders: list[Callable[[], object]] = []


def provide(load: Callable[[], object]) -> None:
    """`load` enters views; it is called once, when the first of them is asked for."""
    _loaders.append(load)


def view(name: str) -> Callable[[F], F]:
    """Decorator: enter a function, as "Trajectory.plot"."""

    def enter(function: F) -> F:
        _views[name] = function
        return function

    return enter


def shown_by(name: str) -> Callable[..., Any]:
    """The function that was entered under a name."""
    while name not in _views and _loaders:
        _loaders.pop(0)()
    if name not in _views:
        raise PliantError(f"Nothing is entered that shows '{name}'.")
    return _views[name]


class Shown:
    """A record with a figure and a table: `NAME.plot` and `NAME.html` are entered for its class."""

    def plot(self, **options: Any) -> Any:
        """A Matplotlib figure, returned and not shown; a notebook shows what a cell ends with.

        Options are those of the class's function in `pliant.app.pictures.views`.
        """
        return shown_by(f"{_name(self)}.plot")(self, **options)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return shown_by(f"{_name(self)}.html")(self)


def _name(record: Shown) -> str:
    """The class that is a Shown itself: those derived from it are shown as it is."""
    return next(c.__name__ for c in type(record).__mro__ if Shown in c.__bases__)
