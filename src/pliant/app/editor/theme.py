"""Light or dark: the page's panel, and the colours of what must stand out from its background."""

from dataclasses import dataclass
from typing import Any

Colour = tuple[int, int, int]

BRAND: Colour = (196, 85, 45)


@dataclass(frozen=True)
class Theme:
    """cell, section: lines of the ground; outline: of a flat body; full_cell: edges of whole cells;
    obstacle: what stands around. Bodies and held points have one colour in both.
    """

    dark: bool
    cell: Colour
    section: Colour
    outline: Colour
    full_cell: Colour
    obstacle: Colour

    def dress(self, gui: Any) -> None:
        """Give viser's panel its colours; pages that open later have them too."""
        gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=BRAND, dark_mode=self.dark
        )


LIGHT = Theme(
    dark=False, cell=(222, 226, 230), section=(190, 197, 204), outline=(70, 78, 86),
    full_cell=(96, 125, 150), obstacle=(170, 178, 186),
)  # fmt: skip

DARK = Theme(
    dark=True, cell=(52, 57, 63), section=(84, 92, 100), outline=(200, 206, 212),
    full_cell=(150, 180, 206), obstacle=(110, 118, 126),
)  # fmt: skip
