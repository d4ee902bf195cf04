"""Whole runs of the metric-driven scheduler and its containers, against both written down slowly.

Seconds are fractions with powers of two, so that arrivals, ends, readings and passes coincide without rounding.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.monitored.containers import Containers
from fastsim.engine.monitored.plan import ContainerLifecycle
from fastsim.engine.monitored.run import Exporter, MonitoredRun, PodArrival
from fastsim.policies.monitored.knots import Knots
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.usage_profile import Phase, Profile
from tests.reference.monitored_containers import PodStay, ReferenceContainers, ReferencePod
from tests.reference.monitored_passes import Bound, ReferencePasses
from tests.strategies import scenarios_per_run

CAPACITY_MIB = 1000
OFF_S = 1 / 32
"""Keeps starts, ends and passes apart, where the order of two at one second is nobody's rule."""
LIFECYCLE = ContainerLifecycle(4 + OFF_S, 1 - 2 * OFF_S, (0.0, 8.0, 16.0))
SWITCHES = ("heap_ties", "one_release", "api_pace", "zero_draw", "idle_pass")
SIZES = ((300,), (300, 500, 1000), (250, 400, 600, 900))


class MonitoredCase(NamedTuple):
    """A run: the scheduler, the number of GPUs, pods, and gaps between refreshes of the exporter."""

    rule: Knots
    gpus: int
    pods: tuple[ReferencePod, ...]
    gaps_s: tuple[float, ...]

    def refreshes(self) -> Iterator[float]:
        """Seconds of refreshes, from the first arrival on."""
        return itertools.accumulate(itertools.cycle(self.gaps_s), initial=self.begin_s)

    @property
    def begin_s(self) -> float:
        """The first arrival."""
        return min(pod.submit_s for pod in self.pods)


def by_engine(case: MonitoredCase) -> tuple[list[Bound], list[PodStay]]:
    """Bindings and stays of the engine."""
    device = Device(CAPACITY_MIB, 20, 100)
    containers = Containers([device] * case.gpus, LIFECYCLE)
    held = [Profile("held", (Phase(float("inf"), pod.memory_mib),)) for pod in case.pods]
    capacity_mib = [CAPACITY_MIB] * case.gpus
    run = MonitoredRun(
        case.rule.watch().scheduler(capacity_mib, case.begin_s), capacity_mib, containers,
        Exporter(containers, case.refreshes()), lambda pod, gpu: held[pod.pod],
    )  # fmt: skip
    arrivals = [PodArrival(pod, one.submit_s, one.work_s, one.request_mib, None) for pod, one in enumerate(case.pods)]
    run.play(iter(sorted(arrivals, key=lambda one: (one.submit_s, one.pod))))
    bindings = [history.binding for history in run.histories.values() if history.binding is not None]
    bound = sorted((Bound(*one) for one in bindings), key=lambda one: one.at_s)
    stays = [PodStay(stay.container.pod, stay.start_s, stay.end_s, stay.killed) for stay in run.stays()]
    return bound, sorted(stays)


def by_statements(case: MonitoredCase) -> tuple[list[Bound], list[PodStay]]:
    """The same, one statement after another."""
    refreshes = list(itertools.islice(case.refreshes(), 4000))
    capacity_mib = [CAPACITY_MIB] * case.gpus
    world = ReferenceContainers(case.pods, capacity_mib, LIFECYCLE, refreshes)
    requests = {pod: one.request_mib for pod, one in enumerate(case.pods)}
    bound = ReferencePasses(case.rule, capacity_mib, requests, case.begin_s).play(world)
    return bound, sorted(world.stays)


def pods_of(sizes: tuple[int, ...], longest: int) -> st.SearchStrategy[ReferencePod]:
    """Pods that declare one of ``sizes`` and hold some of it, and come and end in quarters of a second."""
    quarters = st.integers(0, longest).map(lambda number: number / 4)
    works = st.integers(0, longest).map(lambda number: number / 4 + OFF_S)
    parts = st.sampled_from((0.125, 0.5, 1.0))
    return st.builds(
        lambda submit_s, work_s, size, part: ReferencePod(submit_s, work_s, size, int(size * part)),
        quarters, works, st.sampled_from(sizes), parts,
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> MonitoredCase:
    """Runs of up to fifteen pods."""
    switches = {name: draw(st.booleans()) for name in SWITCHES}
    rule = Knots(
        requests_per_s=draw(st.sampled_from((1.0, 4.0, 8.0))), burst=draw(st.sampled_from((1, 3, 10))),
        pass_s=draw(st.sampled_from((0.5, 0.5, 0.25))), placed_s=draw(st.sampled_from((5.0, 5.0, 0.0))), **switches,
    )  # fmt: skip
    sizes, longest = draw(st.sampled_from(SIZES)), draw(st.sampled_from((20, 160, 400)))
    pods = draw(st.lists(pods_of(sizes, longest), min_size=1, max_size=15))
    gaps_s = draw(st.sampled_from(((6.0, 8.0), (1 + OFF_S,), (3.0, 2 + 2 * OFF_S))))
    return MonitoredCase(rule, draw(st.integers(1, 2)), tuple(pods), gaps_s)


@settings(max_examples=scenarios_per_run(3600))
@given(cases())
def test_runs_are_those_of_the_statements(case: MonitoredCase) -> None:
    assert by_engine(case) == by_statements(case)


def test_pods_that_ended_together_are_released_one_in_a_pass_while_none_waits() -> None:
    ended = [ReferencePod(0.0, 20 - 5.5 * number + OFF_S, 300, 37) for number in range(3)]
    late = ReferencePod(90.0, 5.0 + OFF_S, 1000, 1000)
    case = MonitoredCase(Knots(one_release=True), 1, (*ended, late), (6.0, 8.0))
    bound, _ = by_engine(case)
    assert (bound, _) == by_statements(case)
    assert bound[-1] == Bound(3, 0, 90.5, "direct")


def drawn_case(seed: int) -> MonitoredCase:
    """A run of thirty pods of one GPU with all switches on."""
    draw = random.Random(seed)
    rule = Knots(requests_per_s=4.0, **dict.fromkeys(SWITCHES, True))
    pods, submit_s = list[ReferencePod](), 0.0
    for _ in range(30):
        submit_s += draw.randrange(0, 160) / 4
        size = draw.choice((300, 300, 600, 900))
        pods.append(ReferencePod(submit_s, draw.randrange(40, 600) / 4 + OFF_S, size, draw.choice((size // 4, size))))
    return MonitoredCase(rule, 1, tuple(pods), (6.0, 8.0))


def slow_server(seed: int) -> MonitoredCase:
    """A run of eight pods that are looked up one, two or four in a second."""
    draw = random.Random(seed)
    rule = Knots(
        requests_per_s=draw.choice((1.0, 2.0, 4.0)), burst=draw.choice((1, 2, 10)), api_pace=True,
        one_release=draw.random() < 0.5,
    )  # fmt: skip
    pods, submit_s = list[ReferencePod](), 0.0
    for _ in range(8):
        submit_s += draw.randrange(0, 160) / 4
        size = draw.choice((300, 600, 900))
        pods.append(ReferencePod(submit_s, draw.randrange(40, 600) / 4 + OFF_S, size, draw.choice((size // 8, size))))
    return MonitoredCase(rule, 1, tuple(pods), (6.0, 8.0))


@pytest.mark.parametrize("seed", [104, 111, 259, 284])
def test_a_binding_is_reported_a_second_later_and_a_pod_ends_while_others_are_looked_up(seed: int) -> None:
    case = slow_server(seed)
    assert by_engine(case) == by_statements(case)


def test_long_runs_have_every_stage_and_kills() -> None:
    seen: Counter[str] = Counter()
    for seed in range(6):
        case = drawn_case(seed)
        bound, stays = by_engine(case)
        assert (bound, stays) == by_statements(case), seed
        seen.update(one.stage for one in bound)
        seen.update("killed" for one in stays if one.killed)
    assert set(seen) == {"direct", "correlation", "peak", "killed"} and min(seen.values()) >= 5, seen


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_changes_some_run(switch: str) -> None:
    runs = (drawn_case(seed) for seed in range(6))
    assert any(by_engine(case) != by_engine(case._replace(rule=replace(case.rule, **{switch: False}))) for case in runs)
