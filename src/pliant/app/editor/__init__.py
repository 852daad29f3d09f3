"""The editor in a browser: `pliant view`."""
