"""The recorded runs of the Sia simulator, open loop: the recorded GPUs, our jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting, AdaptiveView, NodeGroup, Place
from fastsim.engine.adaptive.run import adaptive_driver
from fastsim.engine.originals.differences import original_from
from tests.golden.sia.sia import SIA
from tests.golden.sia.sia_runs import RecordedRun, smallest_first, trained_applications
from tests.reference.rounds.adaptive_job import JobByHand

pytestmark = pytest.mark.skipif(not SIA.exists(), reason="reference data not found (set FASTSIM_SHARED)")

ROOM = 64
"""Nodes of each GPU model while allocations are replayed: only how many GPUs stand together matters."""
MODELS = ("aws", "dgx-ext", "rtx")
BY_HAND = 500
"""Most rounds of jobs that are also replayed by hand."""

State = tuple[int, float, int, float, int, int]
"""Restarts, seconds of restart left, epoch, progress, samples a GPU takes at once, extra turns."""


def folders() -> list[Path]:
    return sorted((SIA / "runs").glob("*"))


@dataclass
class Recording:
    """Gives jobs the recorded GPUs; every job has nodes of its own."""

    run: RecordedRun
    rounds: Iterator[tuple[int, list[dict[str, Any]]]] = field(init=False)
    now: list[dict[str, Any]] = field(default_factory=list)
    solver_s: float = 0.0

    def __post_init__(self) -> None:
        self.rounds = self.run.by_round()

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places that were recorded; the jobs are those that were there."""
        time_s, self.now = next(self.rounds)
        assert time_s == view.now_s
        assert [row["job"] for row in self.now] == [self.run.names[job.id] for job in view.jobs]
        first = dict.fromkeys(MODELS, 0)
        places = {}
        for job, row in zip(view.jobs, self.now, strict=True):
            ring, model = ring_of(row), row["gpu_type"]
            if ring:
                nodes = [first[model] + at for at, gpus in enumerate(ring) for _ in range(gpus)]
                places[job.id] = Place(MODELS.index(model), tuple(nodes))
                first[model] += len(ring)
        return places


def ring_of(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(gpus) for gpus in row["placement"].split("-")) if row["placement"] else ()


def compare(pairs: Iterator[tuple[dict[str, Any], State]]) -> int:
    """What jobs were in every round is what was recorded; how many rounds of jobs there were."""
    rounds = 0
    for row, found in pairs:
        assert found[:3] == (row["num_restarts"], row["rescale_time"], row["epoch"]), row
        assert found[3] == pytest.approx(row["progress"], rel=1e-9), row
        assert found[4:] == (row["atomic_bsz"], row["accum_steps"]), row
        rounds += 1
    return rounds


@pytest.mark.long
@pytest.mark.parametrize("policy", sorted({RecordedRun(folder).policy for folder in folders()}))
def test_replay(policy: str) -> None:
    rounds = 0
    for run in map(RecordedRun, folders()):
        if run.policy == policy:
            rounds += replayed(run)
    assert rounds > 0


def replayed(run: RecordedRun) -> int:
    """Rounds of the jobs of a recorded run; all that is recorded of them at the end is the same."""
    groups = tuple(NodeGroup(model, (8,) * ROOM, tuple(range(ROOM))) for model in MODELS)
    setting = AdaptiveSetting(groups, trained_applications(), float(run.round_s))
    recording = Recording(run)
    rounds = adaptive_driver(setting, AdaptivePlan(recording, merged=run.policy == "pollux"), run.jobs())
    loop = rounds.loop

    def played() -> Iterator[tuple[dict[str, Any], State]]:
        while loop.active or loop.expected:
            loop.work()
            rounds.decide()
            for row, job in zip(recording.now if loop.active else (), loop.active, strict=True):
                state = job.restarts, job.restart_left_s, job.epoch, job.progress, job.atomic, job.accum
                yield row, state

    count = compare(played())
    for job, row in zip(sorted(loop.ended_jobs, key=lambda job: job.id), run.told.iter_rows(named=True), strict=True):
        assert (job.first_s, job.restarts) == (row["first_alloc_time"], row["num_restarts"])
        assert job.crowd / job.present == pytest.approx(row["n_avg"], rel=1e-12)
        assert job.held_s == sum(row[f"alloc_gpu_s_{model}"] for model in MODELS)
        spent = row["attained_service"], row["used_gpu_seconds"], row["wasted_gpu_seconds"]
        assert (job.service_s, job.used_s, job.wasted_s) == spent
        assert job.finish_s == row["completion_time"]
    return count


@pytest.mark.parametrize(
    "folder", [at for at in folders() if len(RecordedRun(at).rounds) <= BY_HAND], ids=lambda at: at.name
)
def test_replay_by_hand(folder: Path) -> None:
    run = RecordedRun(folder)
    apps, asked = trained_applications(), run.jobs()
    hands = [JobByHand(apps[job.application], job, job.mode == "adaptive", run.policy == "pollux") for job in asked]

    def played() -> Iterator[tuple[dict[str, Any], State]]:
        now_s = 0
        for time_s, rows in run.by_round():
            while now_s < time_s:
                now_s += run.round_s
                for hand in hands:
                    hand.step(float(run.round_s))
            for row in rows:
                hand = hands[run.names.index(row["job"])]
                hand.move(row["gpu_type"] or None, ring_of(row))
                state = hand.restarts, hand.restart_left_s, hand.epoch, hand.progress, hand.atomic, hand.accum
                yield row, state
        for hand in hands:
            hand.step(float(run.round_s))

    assert compare(played()) > 0
    assert [hand.finish_s for hand in hands] == run.told["completion_time"].to_list()


@pytest.mark.parametrize("folder", smallest_first("*", 6))
def test_the_log_of_the_original_has_the_figures_of_its_summary(folder: Path, tmp_path: Path) -> None:
    run = RecordedRun(folder)
    rounds = {time_s: {row["job"]: row for row in rows} for time_s, rows in run.by_round()}
    jobs = run.told.select("name", "submission_time", "completion_time").to_dicts()
    times = range(run.round_s, max(rounds) + 2 * run.round_s, run.round_s)
    lines = [{"timestamp": now, "submitted_jobs": [
        {**job, "completion_time": job["completion_time"] if job["name"] not in rounds.get(now, {}) else None,
         "allocation": _allocation(rounds.get(now, {}).get(job["name"]))}
        for job in jobs if job["submission_time"] <= now
    ]} for now in times]  # fmt: skip
    (tmp_path / "run.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = {name: value.value for name, value in original_from(f"sia:{tmp_path / 'run.log'}").figures.items()}
    told = run.summary
    assert read["jct_mean_s"] / 3600 == pytest.approx(told["avg_jct_h"])
    assert read["jct_p99_rank_s"] / 3600 == pytest.approx(told["p99_jct_h"])
    assert read["makespan_s"] / 3600 == pytest.approx(told["makespan_h"])
    assert read["round_gpu_hours_mean"] == pytest.approx(told["gpu_hours_per_job"])
    assert read["job_rounds"] == told["sum_active"]


def _allocation(row: dict[str, Any] | None) -> list[Any]:
    return [row["gpu_type"], [0] * row["n_gpus"]] if row and row["n_gpus"] else []
