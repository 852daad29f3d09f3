"""Cells that a surface cuts: what is left of them, exactly."""
