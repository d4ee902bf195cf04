"""Drives rounds of adaptive jobs: decisions that are made, policies that run nothing or keep no state."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from fastsim.engine.adaptive.driver import MOST_QUIET, stateful_decider
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveView, Place
from fastsim.engine.adaptive.run import adaptive_driver
from fastsim.engine.driving.drive import Stop
from fastsim.errors import PolicyError
from tests.adaptive import adaptive_setting

JOB = AdaptiveJob(10.0, "cifar10", 1, 128)


@dataclasses.dataclass
class OnePlace:
    """The same place for every job."""

    place: Place | None
    solver_s: float = 0.25

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """That place, or none."""
        return {} if self.place is None else {job.id: self.place for job in view.jobs}


class Remembering(OnePlace):
    """A decider whose state can be stored."""

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: object) -> None:
        """Nothing."""


def test_each_round_asks_once_and_a_job_that_has_its_place_keeps_it() -> None:
    rounds = adaptive_driver(adaptive_setting(), AdaptivePlan(OnePlace(Place(0, (0, 1)))), [JOB])
    for _ in range(4):
        assert rounds.play_on(1) == Stop.ASK_POLICY
        rounds.ask_policy()
    assert rounds.places == {0: Place(0, (0, 1))} and rounds.nodes(rounds.places[0]) == (0, 1)
    assert (rounds.arrived, rounds.active, rounds.ended, rounds.solver_s) == (1, 1, 0, 0.25)
    assert rounds.play_on(0) == Stop.PAUSE
    rounds.until_s = 0.0
    assert rounds.play_on(1) == Stop.DONE


@pytest.mark.parametrize(("job", "advice"), [(JOB, False), (JOB._replace(num_gpu=9), True)])
def test_a_policy_that_runs_nothing_is_told(job: AdaptiveJob, advice: bool) -> None:
    rounds = adaptive_driver(adaptive_setting(), AdaptivePlan(OnePlace(None)), [job])
    with pytest.raises(PolicyError, match=f"no job at work for {MOST_QUIET} rounds") as told:
        rounds.play()
    assert ("1 ask for more than the 8 GPUs of one model: --oversized drop or shrink" in str(told.value)) == advice


def test_a_decider_without_a_state_keeps_no_checkpoints() -> None:
    with pytest.raises(PolicyError, match="OnePlace, whose state cannot be stored"):
        stateful_decider(AdaptivePlan(OnePlace(None)))
    kept = Remembering(None)
    assert stateful_decider(AdaptivePlan(kept)).solver_s == 0.25
