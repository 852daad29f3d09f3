"""The surface in motion: displacements beyond the body, and its level set carried along."""
