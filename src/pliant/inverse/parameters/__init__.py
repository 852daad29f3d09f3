"""Unknowns: blocks of a scene's numbers behind charts, with priors."""
