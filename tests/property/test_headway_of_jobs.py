"""Rounds in which no job ends stop at the budget, in every engine of rounds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.adaptive.driver import AdaptiveDriver
from fastsim.errors import ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.work_budget import CHOICE


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.0005")  # 1,000 rounds


@pytest.mark.parametrize(("cluster", "workload", "policy"), [
    ("synergy:1", "synth:synergy?jobs=3", "srtf+opt"),
    *(("sia:4:4:4", "synth:sia?jobs=3", name) for name in ("sia", "pollux", "optimus", "rotation", "served", "planned"))
])  # fmt: skip
def test_decisions_in_rounds_of_a_thousandth_second_are_refused(cluster: str, workload: str, policy: Any) -> None:
    with pytest.raises(ScenarioError, match="decisions of the policy since a job ended, expected at most 50 decisions"):
        fs.simulate(cluster, workload, policy, round_s=1e-3, record="none")


@pytest.mark.parametrize(("cluster", "workload", "policy"), [
    ("gavel:4:4:4", "synth:gavel?jobs=3", "max_min_fairness"), ("synergy:1", "synth:synergy?jobs=3", "srtf+opt"),
])  # fmt: skip
def test_ctrl_c_is_noticed_at_every_decision(
    cluster: str, workload: str, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decided(driver: object) -> None:
        def stopped() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(interrupts, "check", stopped)

    engine = "shares.run.ShareDriver" if policy == "max_min_fairness" else "orders.run.OrderedDriver"
    monkeypatch.setattr(f"fastsim.engine.{engine}.ask_policy", decided)
    with pytest.raises(KeyboardInterrupt):
        fs.simulate(cluster, workload, policy, round_s=1e-3, record="none")


@pytest.mark.parametrize(("cluster", "workload", "policy"), [
    ("gavel:4:4:4", "synth:gavel?jobs=3", "fifo"),
    ("synergy:1", "synth:synergy?jobs=3", "srtf+tune"),
])  # fmt: skip
def test_rounds_of_a_thousandth_second_are_refused(cluster: str, workload: str, policy: Any) -> None:
    with pytest.raises(ScenarioError, match=r"rounds since a job ended, expected at most 1,000 rounds"):
        fs.simulate(cluster, workload, policy, round_s=1e-3, record="none")


def test_decisions_in_which_no_job_can_end_are_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of Sia start with a restart of 30 s or more: decisions by the nanosecond are refused before the first."""
    monkeypatch.delattr(AdaptiveDriver, "ask_policy")
    with pytest.raises(fs.ScenarioError, match=r"round_s: .*decisions"):
        fs.simulate("sia:1:1:1", "synth:sia?jobs=2", "sia", round_s=1e-9)


@pytest.mark.parametrize("round_s", [5e-4, 1e-3])
def test_searches_of_pollux_in_rounds_of_a_thousandth_second_are_foreseen(
    round_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search is a hundred generations, so its budget is used up long before that of decisions.

    In rounds of a thousandth second it is used up when the first jobs have restarted, before any can end.
    """
    monkeypatch.delenv(CHOICE)
    monkeypatch.delattr(AdaptiveDriver, "ask_policy")
    with pytest.raises(ScenarioError, match=r"round_s: found [\d,]+ generations of the search"):
        fs.simulate("sia:3:1:1", "synth:sia?jobs=8", "pollux", round_s=round_s, record="none")


def test_what_is_foreseen_begins_with_the_first_job() -> None:
    """A run that is cut a few seconds after its first job arrives, however late that is, has few decisions."""
    jobs = fs.Workload.from_text("synth:sia?jobs=2").table()
    late = fs.Workload.from_arrow(jobs.set_column(
        jobs.schema.get_field_index("submit_s"), "submit_s", pa.array([1e6, 1e6 + 1], pa.float64())
    ))  # fmt: skip
    result = fs.simulate("sia:1:1:1", late, "sia", round_s=0.05, until_s=1e6 + 1, record="none")
    assert result.summary["rounds"][0] <= 25
