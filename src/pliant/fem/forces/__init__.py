"""Forces, tangents and masses of cells."""
