"""What a simulation is about: bodies of cells on a grid or of tetrahedra, and their surfaces."""
