"""Reduced bodies; loading this enters the words that `model` may be in a scene."""

from pliant.reduced import constitutions as constitutions
