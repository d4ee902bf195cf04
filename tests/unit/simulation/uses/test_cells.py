"""Cells of the tables of uses: their texts, and what they are in a run."""

from __future__ import annotations

import pytest

from fastsim.simulation.uses.cells import DESCRIBES, IGNORED, REFUSED, USED, Conditions, Use, cells

CONDITIONS: Conditions = {"even": (lambda number: number % 2 == 0, "an even number")}


def test_a_plain_cell_is_the_same_in_every_run() -> None:
    cell = Use.parsed("used")
    assert cell == (USED, "", "") and cell.shown(CONDITIONS) == USED
    assert {cell.in_run(number, CONDITIONS) for number in (1, 2)} == {USED}


def test_a_condition_decides() -> None:
    cell = Use.parsed("even: used else ignored")
    assert cell == (USED, "even", IGNORED)
    assert cell.shown(CONDITIONS) == "used with an even number, else ignored"
    assert [cell.in_run(number, CONDITIONS) for number in (2, 3)] == [USED, IGNORED]


@pytest.mark.parametrize("table", ["columns", "options"])
def test_cells_have_known_words(table: str) -> None:
    words = {USED, REFUSED, IGNORED, DESCRIBES}
    for row in cells(table).values():
        assert all(cell.use in words and (cell.otherwise in words) == bool(cell.condition) for cell in row.values())
