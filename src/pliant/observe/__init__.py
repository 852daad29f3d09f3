"""What depth cameras see."""
