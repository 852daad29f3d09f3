"""Several bodies in one scene: what they are, where they touch, and how they step together."""
