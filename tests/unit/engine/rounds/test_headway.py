"""Rounds in which no job ends stop at the budget, in every engine of rounds."""

from __future__ import annotations

from typing import Any

import pytest

import fastsim as fs
from fastsim.engine.rounds.headway import RoundHeadway
from fastsim.errors import ScenarioError
from fastsim.foundation.limits.work_budget import CHOICE


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.0005")  # 1,000 rounds


def test_rounds_count_from_the_last_job_that_ended() -> None:
    headway = RoundHeadway()
    headway.check(1000, 0, 1.0)
    headway.check(1500, 1, 2.0)
    headway.check(2500, 1, 3.0)
    with pytest.raises(ScenarioError, match="run at 4 s, 1 jobs ended: found 1,001 rounds since a job ended, expected"):
        headway.check(2501, 1, 4.0)


@pytest.mark.parametrize(("cluster", "workload", "policy"), [
    ("gavel:4:4:4", "synth:gavel?jobs=3", "fifo"),
    ("synergy:1", "synth:synergy?jobs=3", "srtf+tune"),
    ("sia:1:1:1", "synth:sia?jobs=3", "sia"),
])  # fmt: skip
def test_rounds_of_a_thousandth_second_are_refused(cluster: str, workload: str, policy: Any) -> None:
    with pytest.raises(ScenarioError, match=r"rounds since a job ended, expected at most 1,000 rounds"):
        fs.simulate(cluster, workload, policy, round_s=1e-3, record="none")
