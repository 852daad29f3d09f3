"""From observations back to what a body is made of."""
