"""Statistics over seeds, and how far apart two samples of them may be."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.experiments.statistics.curve_statistics import STATISTICS, seeds_bar, statistic


def test_statistics() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 10.0]
    found = {name: statistic(name, values) for name in STATISTICS}
    assert found == {"mean": 4.0, "median": 3.0, "q25": 2.0, "q75": 4.0, "sd_over_seeds": pytest.approx(12.5**0.5)}
    assert statistic("sd_over_seeds", [1.0]) == 0 and seeds_bar("mean", [1.0]) is None


@pytest.mark.parametrize("name", STATISTICS)
def test_samples_of_one_distribution_differ_by_less_than_the_bar(name: str) -> None:
    random = np.random.default_rng(1)
    outside = 0
    for _ in range(400):
        ours, theirs = random.normal(5, 2, 10), random.normal(5, 2, 10)
        other = statistic(name, theirs)
        outside += abs(statistic(name, ours) - other) > (seeds_bar(name, ours, other) or 0)
    assert outside <= 8  # two per cent: the errors of quantiles hold for large samples
