"""What GPUs cost over time: a row of prices for every change, a column for every model."""

from typing import Any

class Tariff:
    """Prices of the nodes: row `t` of ``price__tg`` ($/h of a GPU) holds from ``since_s[t]`` on, the first from ever.

    ``column__n`` is the column of each node, -1 if it has no GPUs.
    """

    def __init__(self, since_s: Any, price__tg: Any, column__n: Any) -> None: ...
    def cost(self, n: int, start: float, end: float) -> float:
        """What one GPU of node ``n`` costs from ``start`` to ``end`` (seconds), $."""
