"""Closed loop, with the recorded solver's picks among equal choices: then our runs of Sia are the recorded ones.

Jobs, what each choice is worth to them, who must keep what, and places on nodes are ours. In every round the recorded
choice has to be as good as our best one; where several are, which is picked is the solver's affair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import sia_nodes
from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting, AdaptiveView, JobView, Place
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.sia_decider import STAYING, SiaDecider
from fastsim.policies.deciders.sia_program import NONE, SiaInstance, best_choices, objective_of
from fastsim.simulation.engines.adaptive import groups_of, table_setting
from tests.golden.sia.sia import SIA
from tests.golden.sia.sia_runs import RecordedRun, smallest_first, trained_applications

pytestmark = pytest.mark.skipif(not SIA.exists(), reason="reference data not found (set FASTSIM_SHARED)")

SOLVER_GAP = 1e-4
"""Relative gap at which the recordings' solver stops."""


@dataclass
class Follower:
    """Decides as recorded, and knows how much better our best choices would have been."""

    run: RecordedRun
    sia: SiaDecider
    rounds: Iterator[tuple[int, list[dict[str, Any]]]] = field(init=False)
    others: int = 0
    """Rounds in which ours are not the recorded choices."""
    solver_s: float = 0.0

    def __post_init__(self) -> None:
        self.rounds = self.run.by_round()

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The recorded choices on nodes that are ours."""
        time_s, rows = next(self.rounds)
        assert time_s == view.now_s
        by_row = {row["job"]: row for row in rows}
        assert [*by_row] == [self.run.names[job.id] for job in view.jobs]
        kinds = [[job for job in view.jobs if (job.job.mode == "rigid") == rigid] for rigid in (True, False)]
        instances = [
            instance_of(jobs)
            for jobs, instance_of in zip(kinds, (self.sia._rigid_instance, self.sia._adaptive_instance), strict=True)
        ]
        chosen = [[self.column(job, by_row) for job in jobs] for jobs in kinds]
        self.compare(instances, chosen)
        choices = [(job, column) for jobs, columns in zip(kinds, chosen, strict=True)
                   for job, column in zip(jobs, columns, strict=True) if column != NONE]  # fmt: skip
        self.sia.chosen = {job.id: column for job, column in choices}
        places = self.sia._places(choices)
        for job in view.jobs:
            counts = Counter(places[job.id].nodes if job.id in places else ()).values()
            assert "-".join(map(str, counts)) == (by_row[self.run.names[job.id]]["placement"] or "")
        return places

    def column(self, job: JobView, told: Mapping[str, dict[str, Any]]) -> int:
        """The recorded choice of a job: its group if it is rigid, else its configuration."""
        row, models = told[self.run.names[job.id]], [group.gpu_model for group in self.sia.setting.groups]
        if not row["gpu_type"]:
            return NONE
        group, sizes = models.index(row["gpu_type"]), self.sia.configurations
        if job.job.mode == "rigid":
            return group
        return int(np.flatnonzero((sizes.group__q == group) & (sizes.gpus__q == row["n_gpus"]))[0])

    def compare(self, instances: Sequence[SiaInstance], chosen: Sequence[list[int]]) -> None:
        """The recorded choices are allowed, and no worse than the best."""
        room, without = self.sia.configurations.gpus__g, self.sia.unserved
        theirs = [np.array(columns, np.int64) for columns in chosen]
        used, worth = np.zeros(len(room), np.int64), 0.0
        for instance, columns in zip(instances, theirs, strict=True):
            assert (columns[instance.forced__j] == instance.former__j[instance.forced__j]).all()
            some = np.flatnonzero(columns != NONE)
            gpus = np.broadcast_to(instance.gpus__jq, instance.value__jq.shape)[some, columns[some]]
            np.add.at(used, instance.group__q[columns[some]], gpus)
            worth += objective_of(instance, columns, without)
        assert (used <= room).all()
        best = best_choices(instances, room, without, self.sia.solver, staying=STAYING)
        jobs = sum(map(len, theirs))
        assert worth - best.objective <= SOLVER_GAP * abs(best.objective) + 2 * STAYING * jobs
        self.others += any((a != b).any() for a, b in zip(theirs, best.chosen, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("folder", smallest_first("*_sia", 2))
def test_with_the_recorded_picks_among_equals_runs_are_the_recorded_ones(folder: Path) -> None:
    run = RecordedRun(folder)
    setting = AdaptiveSetting(groups_of(Cluster(*sia_nodes())), trained_applications(), float(run.round_s))
    plan = Sia().begin(setting)
    assert isinstance(plan.decider, SiaDecider)
    follower = Follower(run, plan.decider)
    found = run_adaptive(table_setting(setting), setting, AdaptivePlan(follower, plan.tuned), run.jobs())
    assert found.jobs["finish_s"].tolist() == run.told["completion_time"].to_list()
    assert found.trained["restarts"].tolist() == run.told["num_restarts"].to_list()
    assert next(follower.rounds, None) is None
    print(f"{run.name}: another choice in {follower.others} of {sum(1 for _ in run.by_round())} rounds")
