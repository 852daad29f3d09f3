"""Fits at the terminal: options, folders, tables."""
