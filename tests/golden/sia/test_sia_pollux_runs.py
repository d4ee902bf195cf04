"""Closed loop: our Pollux on the recorded workloads, with the recorded seeds and with others.

The search draws the recorded random numbers and fits are the recorded ones to the last bit, so a run with a recorded
seed is the recorded run: every place in every round, every end.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import sia_nodes
from fastsim.engine.adaptive.plan import AdaptiveSetting, Place
from fastsim.engine.adaptive.run import AdaptiveOutcome, adaptive_driver
from fastsim.policies.adaptive.pollux import Pollux
from fastsim.policies.adaptive.rotation import PROGRAMS, Rotation
from fastsim.policies.adaptive.sia import Sia
from fastsim.simulation.engines.adaptive import groups_of
from tests.conftest import LONG
from tests.golden.sia.sia import SIA
from tests.golden.sia.sia_runs import RecordedRun, known_run, smallest_first, trained_applications

pytestmark = pytest.mark.skipif(not SIA.exists(), reason="reference data not found (set FASTSIM_SHARED)")

SEEDS = 5 if LONG else 3
MEAN_BAR = 0.10
"""Relative, between the mean over our seeds and the mean over those recorded, of average completion times."""
SHORT = 40
"""Jobs of a list that does not keep the cluster busy."""
HOUR_S = 3600.0


@cache
def recorded() -> dict[str, list[RecordedRun]]:
    """Recorded runs by workload."""
    found = defaultdict(list)
    for folder in sorted((SIA / "runs").glob("*_pollux*")):
        run = RecordedRun(folder)
        found[run.summary["workload"]].append(run)
    return found


def setting(round_s: float, seed: int = 0) -> AdaptiveSetting:
    return AdaptiveSetting(groups_of(Cluster(*sia_nodes())), trained_applications(), round_s, seed)


def played(run: RecordedRun, policy: Any, round_s: float, seed: int = 0) -> AdaptiveOutcome:
    """The workload of a recorded run under a policy of ours."""
    jobs = run.jobs()
    if isinstance(policy, Rotation):
        jobs = [job._replace(mode="rigid") for job in jobs]
    return known_run(tuple(jobs), policy, round_s, seed)


def mean_jct_h(run: AdaptiveOutcome) -> float:
    return float((run.jobs["finish_s"] - run.jobs["submit_s"]).mean()) / HOUR_S


@cache
def pollux_h(name: str, seed: int) -> float:
    """Average completion time of our Pollux on the jobs of a recorded run.

    Our run with a recorded seed is the recorded one, as ``test_the_recorded_seed_leads_the_recorded_way`` shows.
    """
    run = RecordedRun(SIA / "runs" / name)
    told = recorded().get(run.summary["workload"], []) if run.policy == "pollux" else []
    for one in told:
        if one.summary["seed"] == seed:
            return float(one.summary["avg_jct_h"])
    return mean_jct_h(played(run, Pollux(), 60.0, seed))


def as_recorded(place: Place | None, models: tuple[str, ...]) -> tuple[str, str]:
    """GPU model and GPUs of each node, as recordings have them."""
    if place is None:
        return "", ""
    count = dict.fromkeys(place.nodes, 0)
    for node in place.nodes:
        count[node] += 1
    return models[place.group], "-".join(map(str, count.values()))


@pytest.mark.long
@pytest.mark.parametrize("folder", smallest_first("*_pollux*", 2))
def test_the_recorded_seed_leads_the_recorded_way(folder: Path) -> None:
    run = RecordedRun(folder)
    settings = setting(float(run.round_s), run.summary["seed"])
    models = tuple(group.gpu_model for group in settings.groups)
    rounds = adaptive_driver(settings, Pollux().begin(settings), run.jobs())
    for time_s, rows in run.by_round():
        while rounds.loop.now_s < time_s:
            rounds.loop.work()
            rounds.decide()
        here = {run.names[job.id]: as_recorded(rounds.places.get(job.id), models) for job in rounds.loop.active}
        assert here == {row["job"]: (row["gpu_type"] or "", row["placement"] or "") for row in rows}, time_s
    while rounds.loop.active or rounds.loop.expected:
        rounds.loop.work()
        rounds.decide()
    jobs = sorted(rounds.loop.ended_jobs, key=lambda job: job.id)
    assert [job.finish_s for job in jobs] == run.told["completion_time"].to_list()
    assert [job.restarts for job in jobs] == run.told["num_restarts"].to_list()


def everything() -> bool:
    """Whether all recorded workloads are played, whatever it takes."""
    return LONG


@cache
def chosen() -> list[str]:
    """Workloads with recorded runs of Pollux; without FASTSIM_LONG=1 the one that takes least to play."""
    found = recorded()
    if everything() or not found:
        return sorted(found)
    return [min(found, key=lambda name: (found[name][0].summary["avg_jct_h"] * len(found[name][0].jobs()), name))]


@cache
def workloads() -> dict[str, dict[str, list[RecordedRun]]]:
    """Recorded runs by workload and policy, Gavel's with its usual program: those where somebody can be compared."""
    found: dict[str, dict[str, list[RecordedRun]]] = defaultdict(lambda: defaultdict(list))
    for folder in sorted((SIA / "runs").glob("*")):
        run = RecordedRun(folder)
        if run.policy != "gavel" or (run.summary["gavel_policy"] or PROGRAMS[0]).startswith(PROGRAMS[0]):
            found[run.summary["workload"] + f" {len(run.names)}"][run.policy].append(run)
    return {name: runs for name, runs in found.items() if "gavel" in runs or "pollux" in runs}


def compared() -> list[str]:
    """Workloads on which policies are compared; without FASTSIM_LONG=1 short ones: that of means over seeds, and
    those on which Sia and Gavel were both recorded."""
    return [
        name for name, runs in sorted(workloads().items())
        if everything() or name.rpartition(" ")[0] in chosen()
        or ({"sia", "gavel"} <= set(runs) and len(runs["sia"][0].names) <= SHORT)
    ]  # fmt: skip


def mean_recorded_h(runs: list[RecordedRun]) -> float:
    """Average completion time over recorded runs."""
    return float(np.mean([run.summary["avg_jct_h"] for run in runs]))


@pytest.mark.long
@pytest.mark.parametrize("workload", chosen())
def test_means_over_seeds(workload: str) -> None:
    runs = recorded()[workload]
    ours = [pollux_h(runs[0].name, seed) for seed in range(SEEDS)]
    off = np.mean(ours) / np.mean([run.summary["avg_jct_h"] for run in runs]) - 1
    print(f"{workload}: {np.mean(ours):.4f} h ({min(ours):.3f} to {max(ours):.3f}), {off:+.1%} of {len(runs)} runs")
    assert abs(off) <= MEAN_BAR


@pytest.mark.long
@pytest.mark.parametrize("workload", compared())
def test_who_is_faster_is_as_recorded(workload: str) -> None:
    """Policies rank as they were recorded, and on the longest list, which keeps the cluster busy, Sia < Pollux < Gavel.

    On the other long lists Pollux was not recorded, and it is not played.

    On three short lists Pollux was recorded alone. Rotation is Gavel's run job by job wherever it was recorded, so it
    stands for Gavel there; it is faster than the recorded Pollux on all three, and has to be faster than ours.
    """
    told = workloads()[workload]
    run = (told.get("pollux") or told["sia"])[0]
    short = len(run.names) <= SHORT
    longest = not short and workload == max(workloads(), key=lambda name: int(name.rpartition(" ")[2]))
    ours = {
        "sia": mean_jct_h(played(run, Sia(), 60.0)),
        "gavel": mean_jct_h(played(run, Rotation(), 360.0)),
    }
    if "pollux" in told or longest:
        ours["pollux"] = float(np.mean([pollux_h(run.name, seed) for seed in range(SEEDS if short else 1)]))
    known = {"gavel": ours["gavel"]} | {policy: mean_recorded_h(runs) for policy, runs in told.items()}
    print(
        f"{workload}: " + ", ".join(f"{name} {at:.4f} h ({known.get(name, np.nan):.4f})" for name, at in ours.items())
    )
    assert [name for name in in_order(ours) if name in known] == in_order(known)
    assert in_order(ours)[0] == "sia"
    if longest:
        assert in_order(ours) == ["sia", "pollux", "gavel"]


def in_order(mean_h: dict[str, float]) -> list[str]:
    """The fastest policy first."""
    return sorted(mean_h, key=mean_h.__getitem__)
