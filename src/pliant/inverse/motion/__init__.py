"""Runs with their derivatives: tangents, adjoints, checkpoints."""
