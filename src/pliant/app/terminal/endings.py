"""How a command can end: its exit codes, and what stops a run that is not the user's mistake."""

from pliant.core.errors import PliantError

BAD_INPUT, FAILED, DEFECT, INTERRUPTED = 2, 3, 70, 130


class Interrupted(PliantError):
    """The run was stopped by a signal; its state is saved."""


class RunFailed(PliantError):
    """The run could not go on; its last good state is saved."""
