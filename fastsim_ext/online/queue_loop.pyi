"""The rules of the waiting line: the order in which entries are tried, and which may overtake."""

from fastsim_ext.online.rules_loop import RulesLoop

class QueueLoop(RulesLoop):
    """A Regulated engine with every queue rule."""
