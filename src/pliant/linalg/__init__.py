"""Block matrices and their solvers."""
