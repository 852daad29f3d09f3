"""Bodies of particles; loading this enters the words that `model` may be in a scene."""

from pliant.particles import constitutions as constitutions
