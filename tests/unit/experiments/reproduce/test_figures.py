"""The list of figures: complete, with a reason for each that is not made."""

from __future__ import annotations

import pytest

from fastsim.errors import ScenarioError
from fastsim.experiments.reproduce.figures import MADE, figure_table, made_figures
from fastsim.experiments.reproduce.papers import PAPERS, run_count
from fastsim.experiments.reproduce.published_numbers import published_numbers


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_is_listed_once(paper: str) -> None:
    table = figure_table(paper)
    assert set(table["figure"]) >= set(published_numbers(paper)["figure"])
    assert table["figure"].n_unique() == len(table) and set(table["status"]) <= {MADE, "impossible"}
    assert table["numbers"].sum() == len(published_numbers(paper))
    assert (table.filter(table["status"] != MADE)["reason"] != "").all()


RUNLESS = {("gavel", "1"), ("gavel", "11"), ("sia", "text 5.3 GPT (unnumbered)")} | {
    ("synergy", name) for name in ("sensitivity", "profiling cost")
}
"""Figures of rates and measurements alone."""
OF_A_LOG = ("synergy", "6")
"""The figure whose jobs are in no generator."""


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_made_has_runs(paper: str) -> None:
    for figure in figure_table(paper).filter(status=MADE)["figure"]:
        if (paper, figure) == OF_A_LOG:
            continue
        assert (run_count(paper, quick=True, figures=[figure]) > 0) == ((paper, figure) not in RUNLESS)


def test_other_figures_are_refused() -> None:
    assert made_figures("fgd", ["9a", "9a"]) == ("9a",) and made_figures("fgd", []) == ()
    with pytest.raises(ScenarioError, match=r"--figure: found '9d', expected one of these: default trace; 7 \(ratio\)"):
        made_figures("fgd", ["9d"])
    with pytest.raises(ScenarioError, match=r"'12', which is impossible \(wall times.*expected one of these: 1; 8; 9"):
        made_figures("gavel", ["12"])
