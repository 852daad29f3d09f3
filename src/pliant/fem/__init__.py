"""Cells, bodies and their elastic forces."""
