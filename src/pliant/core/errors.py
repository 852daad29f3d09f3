"""Errors that a person can act on: one sentence, naming the place and the way out."""


class PliantError(Exception):
    """Anything Pliant refuses to do; its text is the whole message for the user."""


class BadInput(PliantError):
    """A file, number or option that cannot be used as given."""


class SolverFailure(PliantError):
    """A solve that did not reach its tolerance; the text says why and what to try."""


class MissingExtra(PliantError):
    """An optional dependency that this operation needs is not installed."""

    def __init__(self, package: str, extra: str, what: str):
        super().__init__(f"{what} needs the package '{package}': pip install 'pliant[{extra}]'.")
