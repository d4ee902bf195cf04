"""Prices of a GPU over a time in which they change, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim_ext.state.gpu_prices import Tariff

PRICES = np.array([[3600.0, 7200.0], [36.0, 7200.0], [360.0, 0.0]])
"""$/h of two models from 10, 20 and 50 s on."""
TARIFF = Tariff(np.array([10.0, 20.0, 50.0]), PRICES, np.array([1, 0, -1], np.int32))


@pytest.mark.parametrize(
    ("node", "start", "end", "dollars"),
    [
        (1, 12.0, 15.0, 3.0),
        (1, 0.0, 15.0, 15.0),  # the first prices hold from ever
        (1, 12.0, 22.0, 8.0 + 0.02),
        (1, 20.0, 21.0, 0.01),  # a price holds from its second on
        (1, 15.0, 60.0, 5.0 + 0.3 + 1.0),
        (1, 90.0, 91.0, 0.1),
        (0, 15.0, 60.0, 70.0),
        (1, 15.0, 15.0, 0.0),
        (2, 0.0, 99.0, 0.0),  # it has no GPUs
    ],
)
def test_every_part_of_a_stay_has_the_price_of_its_time(node: int, start: float, end: float, dollars: float) -> None:
    assert TARIFF.cost(node, start, end) == pytest.approx(dollars, rel=1e-12)


def test_what_is_no_table_or_no_node_is_refused() -> None:
    none = np.zeros(0)
    for since_s, table, columns in ((none, PRICES, [0]), (none, PRICES[:0], [0]), (np.zeros(3), PRICES, [0, 2])):
        with pytest.raises(ValueError, match=r"rows of prices|no column"):
            Tariff(since_s, table, np.array(columns, np.int32))
    for node in (-1, 3):
        with pytest.raises(IndexError, match="no node"):
            TARIFF.cost(node, 0.0, 1.0)
