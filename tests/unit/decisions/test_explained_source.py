"""What can be explained, and of what: results, scenarios and folders; names or the size of a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.decisions.explained_source import names_or_sample, origin_of
from tests.engines import RUNS


def test_results_scenarios_and_folders_have_an_origin(tmp_path: Path) -> None:
    scenario = fs.Scenario(**RUNS["pods"])
    result = fs.simulate(**RUNS["pods"])
    folder = result.save(tmp_path / "run")
    assert origin_of(scenario, False, {}) == (scenario, None)
    assert origin_of(result, False, {})[0].id == scenario.id == origin_of(str(folder), False, {})[0].id
    with pytest.raises(fs.FastsimError, match="found no readable"):
        origin_of(tmp_path, False, {})


@pytest.mark.parametrize(("names", "sample"), [((), 0), ([1], 2), ((), -1)])
def test_pods_or_a_sample(names: Any, sample: int) -> None:
    with pytest.raises(fs.ScenarioError, match="expected either pods or a sample of them"):
        names_or_sample(names, sample)
    assert names_or_sample("mine", 0) == ["mine"] and names_or_sample((), 3) == []
