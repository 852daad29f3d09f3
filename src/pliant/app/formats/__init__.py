"""Motions as files of other programs."""
