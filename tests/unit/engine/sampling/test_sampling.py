"""Samples of GPUs: the budget of refreshes and samples, and Ctrl-C between them."""

from __future__ import annotations

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.sampling.telemetry_sampler import NO_STAYS, Sampling
from fastsim.errors import ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.work_budget import CHOICE
from fastsim.telemetry.telemetry import telemetry_from

NODE = Cluster.uniform(nodes=1, gpu="T4", gpus=1)


def sampling(text: str, begin_s: float = 0.0) -> Sampling:
    begun = Sampling(telemetry_from(text), NODE, 1, None)  # type: ignore[arg-type]
    begun.begin(begin_s)
    return begun


@pytest.mark.parametrize("text", ["10?refresh_s=1e-9:2e-9", "10?refresh_s=5e-324", "0.001"])
def test_looks_until_a_time_are_refused_before_they_are_made(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"telemetry.*: found .* refreshes and samples of exporters, expected at"):
        sampling(text).take(NO_STAYS, 1e5)


def test_a_cluster_without_gpus_is_sampled_as_often() -> None:
    bare = Sampling(telemetry_from("0.001"), Cluster.uniform(nodes=1), 1, None)  # type: ignore[arg-type]
    bare.begin(0.0)
    with pytest.raises(ScenarioError, match=r"telemetry: found .* refreshes and samples of exporters"):
        bare.take(NO_STAYS, 1e9)


def test_looks_are_counted_while_others_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.0002")  # 600
    with pytest.raises(ScenarioError, match=r"telemetry: refresh_s: found 601 refreshes and samples of exporters"):
        sampling("10?refresh_s=0.5").skip(1e6)
    with pytest.raises(ScenarioError, match=r"telemetry: refresh_s: found 601 refreshes and samples of exporters"):
        sampling("60?refresh_s=50").take(NO_STAYS, 24_000.0)  # 480 refreshes, 400 samples


@pytest.mark.parametrize("begun", ["take", "skip"])
def test_ctrl_c_is_noticed_between_two_looks(begun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupts, "check", stopped)
    one = sampling("10?refresh_s=0.5")
    with pytest.raises(KeyboardInterrupt):
        one.take(NO_STAYS, 1e4) if begun == "take" else one.skip(1e4)


def test_a_gap_that_adds_nothing_is_refused_and_not_repeated() -> None:
    with pytest.raises(ScenarioError, match=r"telemetry: refresh_s: found \(1e-09,\), expected a gap that adds"):
        sampling("10?refresh_s=1e-9", begin_s=1e9).take(NO_STAYS, 1e9 + 1e-3)
