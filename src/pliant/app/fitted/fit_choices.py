"""Costs and losses by name; imports nothing heavy, for the lists of options."""

from pliant.core.errors import BadInput

COSTS = ("auto", "depth", "foot", "pullback")
LOSSES = ("huber", "tukey", "squares")


def require_choices(cost: str, loss: str) -> None:
    """Refuse a cost or loss that there is not."""
    if cost not in COSTS:
        raise BadInput(f"--cost must be one of {', '.join(COSTS)}, not '{cost}'.")
    if loss not in LOSSES:
        raise BadInput(f"--loss must be one of {', '.join(LOSSES)}, not '{loss}'.")
