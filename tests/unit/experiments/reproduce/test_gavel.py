"""Figure 8 of the Gavel paper at one load."""

from __future__ import annotations

import pytest

from fastsim.experiments.reproduce import gavel as figure


def test_the_figure_at_one_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "POLICIES", ("fifo", "gandiva"))
    monkeypatch.setattr(figure, "WINDOW", "20:40")
    monkeypatch.setattr(figure, "CLUSTER", "gavel:8:8:8")
    reported: list[int] = []
    reproduction = figure.gavel_reproduction(None, True, 1, reported.append)
    assert reproduction.runs == figure.run_count(None, "gavel", True) == 2 and reported == [1, 2]
    assert reproduction.cells["published"].to_list() == [18.32, 17.61] and reproduction.cells["bar"].to_list() == [
        pytest.approx(0.04 * 18.32), pytest.approx(0.02 * 17.61),
    ]  # fmt: skip
    assert reproduction.curves["policy"].to_list() == ["fifo", "gandiva"] and "narayanan" in reproduction.citation
