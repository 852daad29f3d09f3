"""The editor's panels: shape, mesh, material, boundary, load, solver, view and the others."""
