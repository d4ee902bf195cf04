"""The picture of a pair of runs: a bar for each part of each group, and the distribution of differences."""

from __future__ import annotations

import pytest

from fastsim.reports.pairs.completion_parts import PARTS
from fastsim.reports.pairs.paired_jobs import GROUPS
from tests.needs import needed
from tests.pairs import by_hand_with_sizes

needed("altair")


@pytest.mark.parametrize("group", GROUPS)
def test_there_is_a_bar_for_each_part_of_each_group(group: str) -> None:
    pairs = by_hand_with_sizes()
    spec = pairs.plot(group).to_dict()
    bars, distribution = spec["hconcat"][0]["layer"][0], spec["hconcat"][1]
    assert bars["encoding"]["color"]["scale"]["domain"] == list(PARTS)
    assert len(set(bars["encoding"]["color"]["scale"]["range"])) == len(PARTS)
    rows = spec["datasets"][bars["data"]["name"]]
    assert len(rows) == len(PARTS) * len(pairs.by(group))
    assert len(spec["datasets"][distribution["data"]["name"]]) == len(pairs.jobs)
