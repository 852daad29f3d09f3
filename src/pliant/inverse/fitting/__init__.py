"""From misfits to values with error bars."""
