"""The ranking as text, and what it says about pairs that tell nothing."""

from __future__ import annotations

import polars as pl

from fastsim.experiments.statistics.ranking import winners
from fastsim.experiments.sweep.winners_text import winners_text


def ranked(b: list[float]) -> str:
    """The text about two policies with three seeds."""
    rows = [{"policy": "a", "seed": seed, "jct_mean_s": 5.0} for seed in range(3)]
    rows += [{"policy": "b", "seed": seed, "jct_mean_s": value} for seed, value in enumerate(b)]
    return winners_text(winners(pl.DataFrame(rows), "jct_mean_s"), "jct_mean_s", ["policy"])


def test_what_pairs_do_not_tell_is_said_with_the_number_that_would() -> None:
    assert ranked([9.0, 4.0, 8.0]).splitlines()[-1] == (
        "cannot tell: too few pairs, or too different ones; about 16 pairs would show the largest of these differences."
        " More seeds tell more; so may --bootstrap"
    )


def test_nothing_is_added_where_the_pairs_tell() -> None:
    assert ranked([9.0, 9.1, 9.2]).splitlines()[-1] == "jct_mean_s: in s, less is better"
