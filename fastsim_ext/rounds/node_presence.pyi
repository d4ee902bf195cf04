"""The nodes that are there in a round, and those that go away before it ends."""

from typing import Any

class NodePresence:
    """``node_of_gpu`` is the node of each GPU, ``away`` the number of reasons for which each node is absent.

    A node is there when no reason is left. Arrays are kept, not copied; ``leaves_s`` has room for each node.
    """

    seen_s: float
    left: int
    def __init__(self, node_of_gpu: Any, away: Any, leaves_s: Any) -> None: ...
    def feed(self, t: Any, node: Any, comes: Any, closed: bool) -> None:
        """The changes that have not happened, in order of time; ``closed``: there are no others."""
    def begin_round(self, now_s: float, until_s: float) -> bool:
        """See the changes until the round begins, and those before ``until_s``; whether further ones are to be fed."""
