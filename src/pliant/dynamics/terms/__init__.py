"""Forces on a body, one file each: what they are, their tangent, and both derivatives."""
