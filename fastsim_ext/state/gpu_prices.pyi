"""Prices of GPUs over time: a row for every change, a column for every model."""

from typing import Any

class Tariff:
    """Prices of the nodes: row `t` of ``price__tg`` ($/h of a GPU) holds from ``since_s[t]`` on, row 0 also before.

    ``column__n`` is the column of each node, -1 if it has no GPUs.
    """

    def __init__(self, since_s: Any, price__tg: Any, column__n: Any) -> None: ...
    def cost(self, n: int, start: float, end: float) -> float:
        """Price of one GPU of node ``n`` from ``start`` to ``end`` (seconds), $."""
