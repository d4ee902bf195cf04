"""Who may try when: the rules of the waiting line."""

from fastsim_ext.regulated import Regulated

class Waiting(Regulated):
    """A Regulated engine with every queue rule."""
