"""Who may try when: the rules of the waiting line."""

from fastsim_ext.online.rules_loop import RulesLoop

class QueueLoop(RulesLoop):
    """A Regulated engine with every queue rule."""
