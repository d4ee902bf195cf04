"""Who may try when: the rules of the waiting line."""

from fastsim_ext.online.rules_loop import Regulated

class Waiting(Regulated):
    """A Regulated engine with every queue rule."""
