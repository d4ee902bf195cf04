"""A whole run of adaptive jobs by hand: round after round, every job in turn, and a policy that decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fastsim.engine.adaptive.ground_truth import GroundTruth
from fastsim.engine.adaptive.plan import (
    AdaptiveJob,
    AdaptivePlan,
    AdaptiveSetting,
    AdaptiveView,
    JobView,
    Place,
    SpeedEstimate,
)
from fastsim.performance.step_time_fit import Observation, fitted
from tests.reference.rounds.adaptive_job import EVERYWHERE, JobByHand, ring_of


def played_by_hand(setting: AdaptiveSetting, plan: AdaptivePlan, asked: Sequence[AdaptiveJob]) -> list[JobByHand]:
    """The jobs as they are when all have finished; jobs come in order of arrival."""
    hands = [begun_by_hand(setting, plan, job) for job in asked]
    now_s, places = 0.0, dict[int, Place]()
    while any(hand.finish_s is None for hand in hands):
        for hand in hands:
            hand.step(setting.round_s)
        now_s += setting.round_s
        active = [n for n, hand in enumerate(hands) if hand.finish_s is None and hand.asked.submit_s <= now_s]
        if not active:
            continue
        views = [view_by_hand(setting, n, hands[n], now_s, places.get(n)) for n in active]
        places = dict(plan.decider.decide(AdaptiveView(now_s, views)))
        for n in active:
            move_by_hand(setting, hands[n], places.get(n))
            hands[n].undisturbed = 1.0 - setting.interference if disturbed(n, places) else 1.0
    return hands


def disturbed(job: int, places: Mapping[int, Place]) -> bool:
    """Whether a job and another one, each on several nodes, have a node in common."""
    nodes = {
        n: {(place.group, node) for node in place.nodes} for n, place in places.items() if len(set(place.nodes)) > 1
    }
    return job in nodes and any(n != job and nodes[job] & other for n, other in nodes.items())


def begun_by_hand(setting: AdaptiveSetting, plan: AdaptivePlan, job: AdaptiveJob) -> JobByHand:
    """A job that has not come yet, with what it knows before it begins."""
    app = setting.applications[job.application]
    hand = JobByHand(app, job, plan.tuned and job.mode == "adaptive", plan.merged, plan.fit_stop)
    for about, at in measured_by_hand(setting, plan, job):
        hand.measured.setdefault(about, {}).setdefault((at.nodes, at.replicas, at.atomic), at)
    hand.perf = {about: fitted(known.values(), plan.fit_stop) for about, known in hand.measured.items()}
    return hand


def measured_by_hand(
    setting: AdaptiveSetting, plan: AdaptivePlan, job: AdaptiveJob
) -> Iterator[tuple[str, Observation]]:
    """What a job was told of each GPU model."""
    if min(plan.measured):
        for number, group in enumerate(setting.groups):
            about = EVERYWHERE if plan.merged else group.gpu_model
            for at in GroundTruth(setting).measured(setting.applications[job.application], number, plan.measured):
                yield about, Observation(*at)


def view_by_hand(setting: AdaptiveSetting, number: int, hand: JobByHand, now_s: float, place: Place | None) -> JobView:
    """One job as a policy sees it."""
    return JobView(
        number, hand.asked, hand.app, now_s - hand.asked.submit_s, max(hand.restarts, 0), hand.restart_left_s,
        hand.service_s, hand.epoch, hand.progress, hand.noise, estimates_by_hand(setting, hand), place,
    )  # fmt: skip


def estimates_by_hand(setting: AdaptiveSetting, hand: JobByHand) -> Mapping[int, SpeedEstimate]:
    """What a job has learned, by group."""
    found = {}
    for number, group in enumerate(setting.groups):
        about = EVERYWHERE if hand.merged else group.gpu_model
        if about in hand.perf:
            found[number] = SpeedEstimate(hand.perf[about], max(replicas for _, replicas, _ in hand.measured[about]))
    return found


def move_by_hand(setting: AdaptiveSetting, hand: JobByHand, place: Place | None) -> None:
    """Give a job these GPUs, or none."""
    if place is None:
        hand.move(None, ())
        return
    model = setting.groups[place.group].gpu_model
    hand.move(model, ring_of(place.nodes, hand.app.on(model).max_nodes))
