"""Moduli that vary from cell to cell."""
