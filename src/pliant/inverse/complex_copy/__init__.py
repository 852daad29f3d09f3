"""An independent copy of the simulation in complex numbers."""
