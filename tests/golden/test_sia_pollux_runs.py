"""Closed loop: our Pollux on the recorded workloads, with the recorded seeds and with others.

The search draws the recorded random numbers, so a run goes the recorded way until a fit of step times, which ends
where the last bits of its slopes let it, decides a tie otherwise. From there on only averages can be compared.
"""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.adaptive_plan import AdaptiveSetting, Place
from fastsim.adaptive_run import AdaptiveRun, begun, run_adaptive
from fastsim.adaptive_simulation import groups_of, setting_told
from fastsim.one_thread import one_thread
from fastsim.policies.rounds.pollux import Pollux
from fastsim.policies.rounds.rotation import Rotation
from fastsim.policies.rounds.sia import Sia
from fastsim.sia_cluster import sia_cluster
from tests.golden.sia import SIA
from tests.golden.sia_runs import RecordedRun, trained_applications

pytestmark = pytest.mark.skipif(not SIA.exists(), reason="reference data not found (set FASTSIM_SHARED)")

SEEDS = 5
MEAN_BAR = 0.10
"""Relative, between the mean over our seeds and the mean over those recorded, of average completion times."""
FIRST_ROUNDS = 5
"""Rounds with active jobs in which every recorded run is ours, whatever fits say."""
HOUR_S = 3600.0


def recorded() -> dict[str, list[RecordedRun]]:
    """Recorded runs by workload."""
    found = defaultdict(list)
    for folder in sorted((SIA / "runs").glob("*_pollux*")):
        run = RecordedRun(folder)
        found[run.summary["workload"]].append(run)
    return found


def setting(round_s: float, seed: int = 0) -> AdaptiveSetting:
    return AdaptiveSetting(groups_of(sia_cluster()), trained_applications(), round_s, seed)


def played(run: RecordedRun, policy: Any, round_s: float, seed: int = 0) -> AdaptiveRun:
    """The workload of a recorded run under a policy of ours."""
    jobs = run.jobs()
    if isinstance(policy, Rotation):
        jobs = [job._replace(mode="rigid") for job in jobs]
    told = setting(round_s, seed)
    return run_adaptive(setting_told(told), told, policy.begin(told), jobs)


def mean_jct_h(run: AdaptiveRun) -> float:
    return float((run.jobs["finish_s"] - run.jobs["submit_s"]).mean()) / HOUR_S


def as_recorded(place: Place | None, models: tuple[str, ...]) -> tuple[str, str]:
    """GPU model and GPUs of each node, as recordings have them."""
    if place is None:
        return "", ""
    count = dict.fromkeys(place.nodes, 0)
    for node in place.nodes:
        count[node] += 1
    return models[place.group], "-".join(map(str, count.values()))


@pytest.mark.parametrize("folder", sorted((SIA / "runs").glob("*_pollux*")), ids=lambda folder: folder.name)
def test_the_recorded_seed_leads_the_recorded_way(folder: Path) -> None:
    run = RecordedRun(folder)
    told = setting(float(run.round_s), run.summary["seed"])
    models = tuple(group.gpu_model for group in told.groups)
    rounds = begun(told, Pollux().begin(told), run.jobs())

    def equal() -> Any:
        for time_s, rows in run.by_round():
            while rounds.loop.now_s < time_s:
                rounds.loop.work()
                rounds.decide()
            here = {run.names[job.id]: as_recorded(rounds.places.get(job.id), models) for job in rounds.loop.active}
            yield here == {row["job"]: (row["gpu_type"] or "", row["placement"] or "") for row in rows}

    with one_thread():
        same = sum(1 for _ in takewhile(bool, equal()))
    everything = sum(1 for _ in run.by_round())
    print(f"{run.name}: the first {same} of {everything} rounds are the recorded ones")
    assert same >= FIRST_ROUNDS


def everything() -> bool:
    """Whether all recorded workloads are played, whatever it takes."""
    return os.environ.get("FASTSIM_GOLDEN") == "full"


def chosen() -> list[str]:
    """Workloads with recorded runs of Pollux; without FASTSIM_GOLDEN=full the one that takes least to play."""
    found = recorded()
    if everything() or not found:
        return sorted(found)
    return [min(found, key=lambda name: (found[name][0].summary["avg_jct_h"] * len(found[name][0].jobs()), name))]


def ranked() -> list[RecordedRun]:
    """Recorded runs of Sia, one a workload, on lists that Gavel was recorded on too; by default only short ones.

    Not every short list has Pollux before Gavel, in the originals' runs either; where Gavel was recorded, it is behind.
    """
    found: dict[str, dict[str, RecordedRun]] = defaultdict(dict)
    for folder in sorted((SIA / "runs").glob("*")):
        run = RecordedRun(folder)
        found[run.summary["workload"]].setdefault(run.policy, run)
    both = [runs["sia"] for runs in found.values() if {"sia", "gavel"} <= set(runs)]
    return [run for run in both if everything() or len(run.names) <= 40]


@pytest.mark.parametrize("workload", chosen())
def test_means_over_seeds(workload: str) -> None:
    runs = recorded()[workload]
    ours = [mean_jct_h(played(runs[0], Pollux(), 60.0, seed)) for seed in range(SEEDS)]
    off = np.mean(ours) / np.mean([run.summary["avg_jct_h"] for run in runs]) - 1
    print(f"{workload}: {np.mean(ours):.4f} h ({min(ours):.3f} to {max(ours):.3f}), {off:+.1%} of {len(runs)} runs")
    assert abs(off) <= MEAN_BAR


@pytest.mark.parametrize("run", ranked(), ids=lambda run: run.name)
def test_sia_is_faster_and_gavel_is_slower(run: RecordedRun) -> None:
    pollux = mean_jct_h(played(run, Pollux(), 60.0))
    sia, gavel = mean_jct_h(played(run, Sia(), 60.0)), mean_jct_h(played(run, Rotation(), 360.0))
    print(f"{run.name}: Sia {sia:.4f}, Pollux {pollux:.4f}, Gavel {gavel:.4f} h")
    assert sia < pollux < gavel
