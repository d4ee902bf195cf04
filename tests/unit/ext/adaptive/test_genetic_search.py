"""One seed leads the compiled search and the plain one through the same herds."""

from __future__ import annotations

from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

from fastsim_ext.adaptive.genetic_search import GeneticSearch
from tests.reference.rounds import genetic_search as by_hand
from tests.reference.rounds.genetic_operators import fitness, repaired


def problem(jobs: int, nodes: int, node_gpus: int, seed: int) -> dict[str, Any]:
    """A random search: what jobs have and want, in the order in which it is told."""
    random = np.random.RandomState(seed)
    most = random.randint(1, node_gpus * nodes + 1, jobs).astype(np.int32)
    gpus = np.arange(int(most.max()) + 1)
    speedup = gpus ** random.uniform(0.3, 1, (jobs, 2, 1))
    begun = random.randint(0, 2, (1, jobs, nodes)).astype(np.int8)
    base = repaired(random, begun, most, np.zeros_like(most), node_gpus)[0]
    return {
        "base": base, "speedup": speedup, "keeping": random.random_sample(jobs),
        "share": np.full(jobs, 1 / (nodes * node_gpus)), "most": most,
        "least": np.where(random.random_sample(jobs) < 0.2, most, 0).astype(np.int32), "node_gpus": node_gpus,
    }  # fmt: skip


@given(
    st.tuples(st.integers(1, 10), st.integers(1, 6), st.integers(1, 5)), st.sampled_from([-1.0, 0.0, 0.5, -2.0]),
    st.sampled_from([2, 7, 20]), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans(),
)  # fmt: skip
@example((1, 7, 1), -1.0, 100, 4, 5, True)  # of one job: all 128 states, nearly all of them in the population
@example((1, 3, 4), -1.0, 100, 4, 6, False)
@settings(max_examples=60, deadline=None)
def test_the_same_seed_is_the_same_search(
    shape: tuple[int, int, int], power: float, size: int, generations: int, seed: int, apart: bool
) -> None:
    program = problem(*shape, seed)
    ours, random = GeneticSearch(seed, size), np.random.RandomState(seed)
    judge = partial(
        fitness, base__jn=program["base"], speedup__jsk=program["speedup"], keeping__j=program["keeping"],
        share__j=program["share"], node_gpus=program["node_gpus"], power=power,
    )  # fmt: skip
    slow = by_hand.Search(
        program["base"], lambda state: tuple(-part for part in judge(state)),  # type: ignore[arg-type,return-value]
        program["most"], program["least"], program["node_gpus"], size, apart,
    )  # fmt: skip
    states = program["base"][None]
    for _ in range(2):  # the second search begins where the first one ended, states and stream
        expected = slow.front(random, list(states), generations)
        args: Any = (states, *program.values(), power, generations, apart)
        states, mean, utility = ours.front(*args)
        assert states.tolist() == [state.tolist() for state in expected.states]
        assert list(zip((-mean).tolist(), (-utility).tolist(), strict=True)) == expected.losses
        stream: Any = random.get_state()
        assert ours.stream_state() == (stream[1].tolist(), int(stream[2]))


def searched(search: GeneticSearch, generations: int = 5, **changes: Any) -> tuple[Any, Any, Any]:
    """A search of a fixed problem."""
    program = problem(3, 4, 4, 1) | changes
    states, check = program.pop("states", program["base"][None]), program.pop("check", None)
    args: Any = (states, *program.values(), -1.0, generations, True, check)
    return search.front(*args)


def test_who_wins_is_drawn_between_equals() -> None:
    herd = by_hand.Herd([np.zeros((1, 1), np.int8)] * 2, [(0.0, 0.0)] * 2, [0, 0], [1.0, 1.0])
    assert set(by_hand.winners(np.random.RandomState(1), herd, 20)) == {0, 1}


def test_states_are_possible_and_nobody_beats_another() -> None:
    program = problem(6, 4, 4, 3)
    args: Any = (program["base"][None], *program.values(), -1.0, 30)
    states, mean, utility = GeneticSearch(2).front(*args)
    assert (states >= 0).all() and (states.sum(axis=1) <= 4).all() and (states.sum(axis=2) <= program["most"]).all()
    losses = list(zip((-mean).tolist(), (-utility).tolist(), strict=True))
    assert not any(by_hand.beats(one, other) for one in losses for other in losses)


def test_a_search_can_be_stopped_between_two_generations() -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        searched(GeneticSearch(1), 1_000_000, check=stopped)
    checks: list[int] = []
    checked = searched(GeneticSearch(1), 30, check=lambda: checks.append(1))
    assert checks and all(map(np.array_equal, checked, searched(GeneticSearch(1), 30)))


def test_a_stream_goes_on_where_it_was_left() -> None:
    whole, again = GeneticSearch(5), GeneticSearch(6)
    searched(whole)
    again.restore_stream(*whole.stream_state())
    for one, other in zip(searched(whole), searched(again), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "changes",
    [
        {"states": np.zeros((0, 3, 4), np.int8)},
        {"states": np.zeros((9, 3, 4), np.int8)},
        {"states": np.zeros((1, 3, 5), np.int8)},
        {"keeping": np.zeros(2)},
        {"most": np.zeros(2, np.int32)},
        {"speedup": np.zeros((3, 1, 4))},
        {"node_gpus": 0},
        {"node_gpus": 33},
    ],
)
def test_other_shapes_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the shape of a search"):
        searched(GeneticSearch(1, 8), **changes)


def test_a_herd_and_a_stream_are_checked() -> None:
    with pytest.raises(ValueError, match="a population of no states"):
        GeneticSearch(1, 0)
    with pytest.raises(ValueError, match="the state of a stream"):
        GeneticSearch(1).restore_stream([1, 2], 0)
