"""Containers that share a GPU: how fast they go, and who dies for want of memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.monitored.containers import Containers
from fastsim.engine.monitored.plan import ContainerLifecycle
from fastsim.errors import PolicyError
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.usage_profile import Phase, Profile

DEVICE = Device(1000, 20, 100, slowdown=(1.0, 1.0, 2.0))
LIVES = ContainerLifecycle(start_s=2, known_s=1, wait_s=(0, 10, 20))


def holding(memory_mib: float, after_s: float = 5.0, less_mib: tuple[float, ...] = ()) -> Profile:
    return Profile("p", (Phase(after_s), Phase(math.inf, memory_mib, 50, less_mib=less_mib)))


def ends_s(containers: Containers) -> dict[int, list[tuple[float, bool]]]:
    """When stays ended, and whether for want of memory, by pod."""
    found: dict[int, list[tuple[float, bool]]] = {}
    for stay in containers.stays:
        found.setdefault(stay.container.pod, []).append((stay.end_s, stay.killed))
    return found


def test_who_runs_alone_takes_as_long_as_its_work() -> None:
    containers = Containers([DEVICE], LIVES)
    containers.bind(1, 0, holding(400), 30.0, 10.0)
    assert containers.next_s() == 12 and not containers.advance(42.9)
    assert ends_s(containers) == {1: [(42, False)]} and 1 in containers.pods
    assert [one.pod for one in containers.advance(43)] == [1] and not containers.pods
    assert containers.next_s() == math.inf


def test_who_shares_takes_longer() -> None:
    containers = Containers([DEVICE, DEVICE], LIVES)
    containers.bind(1, 0, holding(400), 30.0, 0.0)
    containers.bind(2, 0, holding(400), 30.0, 10.0)
    containers.bind(3, 1, holding(400), 30.0, 10.0)
    containers.advance(1000)
    # 10 s alone, then at half speed together until the first is done, 20 s of work later.
    assert ends_s(containers) == {1: [(52, False)], 2: [(62, False)], 3: [(42, False)]}


def test_who_asks_for_memory_that_is_not_there_dies_and_comes_back() -> None:
    containers = Containers([DEVICE], LIVES)
    containers.bind(1, 0, holding(800), 100.0, 0.0)
    containers.bind(2, 0, holding(300), 10.0, 1.0)
    containers.advance(1000)
    # It dies after 5 s, comes back at once, after 10 s, and then after 20 s again and again.
    found = ends_s(containers)[2]
    assert [end_s for end_s, killed in found if killed][:4] == [8, 13, 28, 53]
    assert found[-1][1] is False and containers.gpus[0].kib == 0
    lost_s = next(stay.lost_s for stay in containers.stays if stay.container.pod == 2 and not stay.killed)
    assert lost_s == pytest.approx(2.5 * (len(found) - 1))  # 5 s at half speed, each time


def test_who_can_do_with_less_takes_the_largest_piece_and_keeps_to_it() -> None:
    containers = Containers([DEVICE], LIVES)
    less = (250.0, 180.0, 90.0)
    growing = Profile("g", (Phase(5, 10), Phase(4, 300, less_mib=less), Phase(math.inf, 300, less_mib=less)))
    containers.bind(1, 0, holding(800), 10.0, 0.0)
    containers.bind(2, 0, growing, 50.0, 1.0)
    containers.advance(9)
    assert containers.gpus[0].used_mib() == 980
    containers.advance(30)  # the other one is gone, and there would be room for all
    assert containers.gpus[0].used_mib() == 180
    containers.advance(1000)
    assert not any(stay.killed for stay in containers.stays)
    assert {stay.container.pod: stay.profile for stay in containers.stays} == {1: "p", 2: "g@180.0"}


def test_who_finds_not_even_the_least_dies() -> None:
    containers = Containers([DEVICE], LIVES)
    containers.bind(1, 0, holding(800), 100.0, 0.0)
    containers.bind(2, 0, holding(300, less_mib=(250.0, 201.0)), 10.0, 1.0)
    containers.advance(9)
    assert ends_s(containers) == {2: [(8, True)]} and containers.gpus[0].used_mib() == 800


def test_who_runs_for_ever_stays() -> None:
    containers = Containers([DEVICE], LIVES)
    containers.bind(7, 0, holding(100), math.inf, 0.0)
    containers.advance(1e6)
    (stay,) = containers.still_running()
    assert (stay.container.pod, stay.start_s, stay.end_s, containers.next_s()) == (7, 2, math.inf, math.inf)


@pytest.mark.parametrize("wrong", [{"wait_s": ()}, {"start_s": -1.0}, {"wait_s": (-1.0,)}])
def test_lives_make_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(PolicyError, match="seconds of 0 or more"):
        ContainerLifecycle(**wrong)  # type: ignore[arg-type]


PODS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 40), st.sampled_from((100, 300, 600, 1000))), min_size=1, max_size=8
)


@given(PODS, st.sampled_from(((), (1.0, 1.0, 1.5, 2.0))))
def test_memory_is_never_over_and_all_work_is_done(
    pods: list[tuple[int, int, int]], slowdown: tuple[float, ...]
) -> None:
    containers = Containers([Device(1000, 20, 100, slowdown=slowdown)], LIVES)
    for pod, (at_s, work_s, memory) in enumerate(sorted(pods)):
        containers.advance(at_s)
        containers.bind(pod, 0, holding(memory, 3.0), work_s, at_s)
        assert containers.gpus[0].used_mib() <= 1000
    # Two that keep each other out take turns for ever only if both hold on, and nobody does.
    while containers.pods:
        containers.advance(containers.next_s())
        assert 0 <= containers.gpus[0].used_mib() <= 1000
    for pod, (_, work_s, _) in enumerate(sorted(pods)):
        last = [stay for stay in containers.stays if stay.container.pod == pod][-1]
        assert not last.killed and last.end_s - last.start_s >= work_s - 1e-9
