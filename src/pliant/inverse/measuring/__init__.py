"""What a motion is compared with, and by how much it misses."""
