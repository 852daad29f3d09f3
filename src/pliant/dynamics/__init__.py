"""Scenes at rest and in motion."""
