"""Folders of runs and films, and what they are exported to."""
