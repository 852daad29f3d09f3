"""Scenes as files and tables."""
