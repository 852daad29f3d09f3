"""Launches, solution records and errors: what every layer stands on."""
