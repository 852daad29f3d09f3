"""Elastic bodies, simulated and identified from depth cameras."""
