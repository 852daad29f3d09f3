"""Laws fitted to curves of a test machine."""
