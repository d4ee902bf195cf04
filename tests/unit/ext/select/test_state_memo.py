"""The compiled memo against a dict, while it grows, widens and is cleared; and the pool of memos."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.online.memo_pool import MemoPool, memo_key
from fastsim_ext.select.state_memo import Memo
from tests.strategies import scenarios_per_run

State = tuple[int, int, tuple[int, ...]]
Class = tuple[int, int, int, int, int]
WIDTH, EACH = 3, 2

states = st.tuples(
    st.integers(0, 2), st.sampled_from((0, 1, 8000, 2**32, 2**32 + 1, 2**40)),
    st.tuples(*[st.sampled_from((0, 500, 1000))] * WIDTH),
)  # fmt: skip
classes = st.tuples(
    st.integers(0, 3), st.integers(-1, 2), st.integers(0, 2), st.sampled_from((0, 500)), st.sampled_from((0, 2**63)),
)  # fmt: skip
notes = st.tuples(states, classes, st.integers(0, EACH - 1), st.integers(-5, 5))


class MemoAndDict:
    """A memo beside a dict that is cleared with the memo."""

    def __init__(self, most_bytes: int) -> None:
        self.memo, self.most_bytes = Memo(WIDTH, EACH, most_bytes), most_bytes
        self.known: dict[tuple[State, Class, int], int] = {}
        self.generation = 0

    def checked(self, state: State, cls: Class, term: int) -> tuple[int, int, int]:
        """(state, place, term) of a figure in the memo, which must be that of the dict."""
        place, number = self.memo.place(*cls), self.memo.number(*state)
        if self.memo.generation != self.generation:
            assert self.most_bytes < 10**6
            self.generation, self.known = self.memo.generation, {}
        assert self.memo.figure(number, place, term) == self.known.get((state, cls, term))
        return number, place, term

    def note(self, state: State, cls: Class, term: int, figure: int) -> None:
        """Store a figure in both."""
        self.memo.keep(*self.checked(state, cls, term), figure)
        self.known[state, cls, term] = figure


@given(st.lists(notes, min_size=1, max_size=60), st.booleans(), st.data())
def test_pod_classes_get_new_places_with_what_is_known_of_them(
    asked: list[tuple[State, Class, int, int]], coarse: bool, data: st.DataObject
) -> None:
    memo, known = Memo(WIDTH, EACH, 10**6, np.array([0, 500]) if coarse else None), dict[tuple[int, int, int], int]()
    for state, cls, term, figure in asked:
        key = memo.number(*state), memo.place(*cls), term
        memo.keep(*key, figure)
        known[key] = figure
    places = data.draw(st.permutations(range(memo.n_lanes)))
    kept = places[: data.draw(st.integers(0, memo.n_lanes))]
    had = {place: next(cls for _, cls, *_ in asked if memo.place(*cls) == place) for place in kept}
    memo.reorder(kept)
    memo.verify()
    assert memo.n_lanes == len(kept)
    for number in range(memo.n_states):
        for new, old in enumerate(kept):
            found = [memo.figure(number, new, k) for k in range(EACH)]
            assert found == [known.get((number, old, k)) for k in range(EACH)]
    assert [memo.place(*had[place]) for place in kept] == list(range(len(kept)))
    fresh = memo.place(9, 9, 9, 9, 9)
    assert fresh == len(kept) and all(memo.figure(k, fresh, 0) is None for k in range(memo.n_states))
    with pytest.raises(IndexError, match="expected some of"):
        memo.reorder([0, 0])


@given(st.lists(notes, max_size=120), st.sampled_from((1, 4000, 10**6)))
@settings(max_examples=scenarios_per_run(150))
def test_it_knows_what_a_dict_knows_until_it_forgets(asked: list[tuple[State, Class, int, int]], most: int) -> None:
    both = MemoAndDict(most)
    for state, cls, term, figure in asked:
        both.note(state, cls, term, figure)
        both.memo.verify()
    for state, cls, term in list(both.known):
        both.checked(state, cls, term)
    assert both.memo.n_lanes == len({cls for _, cls, _, _ in asked})


@pytest.mark.parametrize("part", range(3))
def test_states_that_differ_in_one_thing_are_two(part: int) -> None:
    memo = Memo(WIDTH, EACH, 10**6)
    state: list[Any] = [1, 8000, (1000, 500, 0)]
    other = state.copy()
    if part < 2:
        other[part] += 1
    else:
        other[2] = (500, 1000, 0)  # another order of the devices
    assert memo.number(*state) == memo.number(*state) == 0 and memo.number(*other) == 1


@pytest.mark.parametrize("part", range(5))
def test_classes_that_differ_in_one_thing_are_two(part: int) -> None:
    memo, cls = Memo(WIDTH, EACH, 10**6), [1000, 1, 1, 500, 2]
    other = [value + (i == part) for i, value in enumerate(cls)]
    assert memo.place(*cls) == memo.place(*cls) == 0 and memo.place(*other) == 1


@pytest.mark.parametrize("each", [1, 8])
def test_rows_stay_below_the_most_bytes_however_many_classes_come(each: int) -> None:
    most = 400_000
    memo = Memo(8, each, most)
    for k in range(512):
        assert memo.place(k, 0, 0, 0, 0) == k
        for j in range(20):
            number = memo.number(k, j, [1000] * 8)
            assert memo.figure(number, k, each - 1) is None
            memo.keep(number, k, each - 1, j)
    # The table of places of the keys, 8 bytes for each state, comes on top.
    assert memo.bytes <= most * 1.25 and memo.generation > 0 and memo.forgotten > 0
    assert memo.place(512, 0, 0, 0, 0) == -1 and memo.n_lanes == 512
    assert memo.verify() == 0


CPUS = (1000, 2500, 4000)


def ranks(cpu_left: int, taken: set[int]) -> list[int]:
    """How many requests are satisfied now and after so much CPU was taken."""
    return [sum(cpu <= cpu_left - less for cpu in CPUS) for less in sorted({0, *taken})]


@given(st.lists(st.integers(0, 9000), max_size=8), st.lists(st.integers(0, 140_000), min_size=2, max_size=30))
def test_amounts_of_cpu_that_satisfy_the_same_requests_are_one_state(taken: list[int], left: list[int]) -> None:
    memo = Memo(1, 1, 10**6, np.array(CPUS, np.int64))
    for k, cpu in enumerate(taken):
        assert memo.place(cpu, 0, 0, 0, 0) == memo.n_lanes - 1 or cpu in taken[:k]
    if not taken:
        memo.place(0, 0, 0, 0, 0)
    number = {cpu: memo.number(0, cpu, [0]) for cpu in left}
    for a in left:
        for b in left:
            assert (number[a] == number[b]) == (ranks(a, set(taken)) == ranks(b, set(taken))), (a, b)


def test_a_class_that_tells_more_apart_does_not_unsettle_what_is_known() -> None:
    memo = Memo(1, 1, 10**6, np.array(CPUS, np.int64))
    first = memo.place(0, 0, 0, 0, 0)
    low, generation = memo.number(0, 2600, [0]), memo.generation
    assert memo.number(0, 3900, [0]) == low
    memo.keep(low, first, 0, 7)
    second = memo.place(1000, 0, 0, 0, 0)  # 3,500 are enough for another request once 1,000 are gone
    assert memo.generation > generation and memo.number(0, 3400, [0]) == low
    high = memo.number(0, 3900, [0])
    assert high != low and memo.figure(high, second, 0) is None and memo.figure(low, first, 0) == 7


def test_the_order_of_devices_does_not_matter_to_fragmentation() -> None:
    memo = Memo(3, 1, 10**6, np.array(CPUS, np.int64))
    memo.place(0, 0, 0, 0, 0)
    assert memo.number(0, 9, [500, 0, 1000]) == memo.number(0, 9, [0, 1000, 500]) != memo.number(0, 9, [500, 500, 1000])


def test_what_is_too_large_is_not_kept() -> None:
    memo = Memo(1, 1, 10**6)
    number, place = memo.number(0, 0, [0]), memo.place(1, 0, 0, 0, 0)
    for figure in (32_768, -32_768, 2**31 - 1):
        memo.keep(number, place, 0, figure)
        assert memo.figure(number, place, 0) is None
    for figure in (32_767, -32_767):
        memo.keep(number, place, 0, figure)
        assert memo.figure(number, place, 0) == figure


def test_what_it_does_not_have_is_refused() -> None:
    memo = Memo(WIDTH, EACH, 10**6)
    number, place = memo.number(0, 1, [0, 0, 0]), memo.place(1, 0, 0, 0, 0)
    for triple in ((number + 1, place, 0), (number, place + 1, 0), (number, place, EACH), (-1, 0, 0)):
        with pytest.raises(IndexError, match="no figure for state"):
            memo.figure(*triple)
    with pytest.raises(ValueError, match="a state has 3 devices"):
        memo.number(0, 1, [0, 0])


def test_a_memo_comes_back_to_the_same_inputs_only_and_to_one_run_at_a_time() -> None:
    pool = MemoPool()
    first = pool.acquire("a", WIDTH, EACH, 10**6)
    assert pool.acquire("a", WIDTH, EACH, 10**6) is not first
    pool.release("a", first)
    assert pool.acquire("b", WIDTH, EACH, 10**6) is not first
    assert pool.acquire("a", WIDTH, EACH, 10**6) is first
    assert pool.acquire("a", WIDTH, EACH, 10**6) is not first
    pool.release("a", first)
    pool.clear()
    assert pool.acquire("a", WIDTH, EACH, 10**6) is not first


def test_the_memo_nobody_used_for_longest_goes_first() -> None:
    one = Memo(WIDTH, EACH, 10**6)
    pool = MemoPool(most_bytes=2 * one.bytes)
    memos = {key: one if key == "a" else Memo(WIDTH, EACH, 10**6) for key in "abc"}
    for key, memo in memos.items():
        pool.release(key, memo)
    found = {key: pool.acquire(key, WIDTH, EACH, 10**6) is memo for key, memo in memos.items()}
    assert found == {"a": False, "b": True, "c": True}


def test_equal_inputs_have_one_key_and_others_another() -> None:
    base: tuple[Any, ...] = (np.arange(3), {"b": 1, "a": np.zeros(2)}, [("fgd", "merge")], 8)
    same = (np.arange(3), {"a": np.zeros(2), "b": 1}, [("fgd", "merge")], 8)
    others = [
        (np.arange(3).reshape(1, 3), *base[1:]), (np.arange(3, dtype=np.int32), *base[1:]),
        (np.array([0, 1, 3]), *base[1:]), (base[0], {"a": np.ones(2), "b": 1}, *base[2:]),
        (*base[:2], [("pwr", "merge")], 8), (*base[:3], 16), base[:3],
    ]  # fmt: skip
    keys = [memo_key(*parts) for parts in (base, *others)]
    assert memo_key(*same) == keys[0] and len(set(keys)) == len(keys)
