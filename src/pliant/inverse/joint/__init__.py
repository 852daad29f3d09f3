"""Several experiments in one fit: what they share, their sum, their opinions."""
