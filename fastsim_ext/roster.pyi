"""What is known of a pod beyond its request: tenant, group, gang, what is believed of its end; and who runs where."""

from typing import Any

class Roster:
    """One record for every slot of the work table, a list of pods for every node, and the gangs."""

    def __init__(self, first: Any, moved: Any) -> None: ...
