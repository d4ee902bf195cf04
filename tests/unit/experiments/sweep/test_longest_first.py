"""The longest runs first: by what is offered, and by what runs of a policy took before."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fastsim.experiments.sweep.longest_first import LongestFirst
from fastsim.scenario.scenario import Scenario


def runs(*kinds: tuple[str, int]) -> list[Scenario]:
    """A scenario for each policy and number of pods."""
    return [Scenario(cluster="openb", workload=f"synth:openb?pods={pods}", policy=policy) for policy, pods in kinds]


class Clock:
    """Seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The seconds now."""
        return self.now_s


def end_of_sweep(scenarios: Sequence[Scenario], seconds: Sequence[float], workers: int) -> tuple[float, list[int]]:
    """When the last run ends, and the order in which they began."""
    clock = Clock()
    order, running = LongestFirst(scenarios, clock), list[tuple[float, int]]()
    while True:
        while len(running) < workers and (at := next(order, None)) is not None:
            running.append((clock.now_s + seconds[at], at))
        if not running:
            return clock.now_s, order.order
        clock.now_s, at = min(running)
        running.remove((clock.now_s, at))
        order.note_end(at)


def test_more_pods_go_first_where_nothing_is_known() -> None:
    found = LongestFirst(runs(("fgd", 10), ("fgd", 30), ("fgd", 20), ("fgd", 30)))
    assert list(found) == found.order == [1, 3, 2, 0]


def test_a_higher_load_goes_first_where_as_much_is_offered() -> None:
    texts = [f"synth:gavel?jobs=10&rate_per_hour={rate}" for rate in (2.0, 4.0, 1.0)]
    found = LongestFirst([Scenario(cluster="gavel:1:1:1", workload=text, policy="fifo") for text in texts])
    assert list(found) == [1, 0, 2]


def test_every_policy_is_tried_and_then_the_slowest_goes_first() -> None:
    listed = runs(*[("fgd", 100)] * 4, *[("random", 100)] * 4, *[("pwr", 100)] * 4)
    end_s, order = end_of_sweep(listed, [1.0] * 4 + [2.0] * 4 + [5.0] * 4, 1)
    assert order == [0, 4, 8, 9, 10, 11, 5, 6, 7, 1, 2, 3] and end_s == 32.0


def test_nothing_long_is_left_to_the_end() -> None:
    listed, seconds = runs(*[("fgd", 100)] * 10, *[("pwr", 100)] * 3), [1.0] * 10 + [5.0] * 3
    assert end_of_sweep(listed, seconds, 2)[0] == 13.0, "in their order it would be 15"


def test_seconds_of_small_runs_tell_of_large_ones() -> None:
    listed = runs(("fgd", 100), ("pwr", 400), ("fgd", 1000), ("pwr", 300), ("pwr", 200))
    _, order = end_of_sweep(listed, [1.0, 40.0, 10.0, 30.0, 20.0], 1)
    assert order == [2, 1, 3, 4, 0]


@given(
    st.lists(st.tuples(st.sampled_from(["fgd", "pwr", "random"]), st.integers(0, 3)), max_size=20), st.integers(1, 4)
)
def test_every_run_begins_once(kinds: list[tuple[str, int]], workers: int) -> None:
    listed = runs(*kinds)
    seconds = [1.0 + pods for _, pods in kinds]
    end_s, order = end_of_sweep(listed, seconds, workers)
    assert sorted(order) == list(range(len(kinds)))
    assert end_s <= sum(seconds) / workers + max(seconds, default=0.0)
