"""Bodies whose lattice lies along x, y, z whatever their shape: turned shapes are cut obliquely."""

from functools import partial

import pliant as pl

oblique_body = partial(pl.GridBody, axes="world")
