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


def played(workload: str, policy: Any, round_s: float, seed: int = 0) -> AdaptiveRun:
    """A recorded workload under a policy of ours."""
    jobs = recorded()[workload][0].jobs()
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


def chosen() -> list[str]:
    """Every recorded workload with FASTSIM_GOLDEN=full, else the one that takes least to play."""
    found = recorded()
    if os.environ.get("FASTSIM_GOLDEN") == "full" or not found:
        return sorted(found)
    return [min(found, key=lambda name: (found[name][0].summary["avg_jct_h"] * len(found[name][0].jobs()), name))]


@pytest.mark.parametrize("workload", chosen())
def test_means_over_seeds_and_who_is_faster(workload: str) -> None:
    ours = [mean_jct_h(played(workload, Pollux(), 60.0, seed)) for seed in range(SEEDS)]
    sia, gavel = mean_jct_h(played(workload, Sia(), 60.0)), mean_jct_h(played(workload, Rotation(), 360.0))
    theirs = [run.summary["avg_jct_h"] for run in recorded()[workload]]
    pollux = float(np.mean(ours))
    off = pollux / np.mean(theirs) - 1
    print(f"{workload}: {pollux:.4f} h ({min(ours):.3f} to {max(ours):.3f}), {off:+.1%} of {len(theirs)} runs; "
          f"Sia {sia:.4f}, Gavel {gavel:.4f} h")  # fmt: skip
    assert abs(off) <= MEAN_BAR
    assert sia < pollux < gavel
