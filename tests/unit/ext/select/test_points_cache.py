"""Cached points are always those of the same key."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from fastsim_ext.select.points_cache import PointsCache

Key = tuple[int, int, int, int, int]
keys = st.tuples(
    st.integers(0, 2), st.sampled_from((0, 1, 2**31 - 1)), st.sampled_from((0, 1, 2**15 - 1)),
    st.sampled_from((0, 1, 64)), st.sampled_from((0, 1, 1000)),
)  # fmt: skip


@given(st.lists(st.tuples(keys, st.integers(0, 100)), max_size=60))
def test_points_are_the_last_ones_of_their_key_or_none(stored: list[tuple[Key, int]]) -> None:
    cache, plain = PointsCache(), dict[Key, int]()
    for key, points in stored:
        assert cache.find(*key) in (None, plain.get(key))
        cache.store(*key, points)
        plain[key] = points
        assert cache.find(*key) == points


def test_a_new_cache_is_empty() -> None:
    assert PointsCache().find(0, 0, 0, 0, 0) is None


def test_each_part_of_a_key_counts() -> None:
    cache = PointsCache()
    cache.store(1, 2, 3, 4, 5, 60)
    for other in ((0, 2, 3, 4, 5), (1, 1, 3, 4, 5), (1, 2, 2, 4, 5), (1, 2, 3, 3, 5), (1, 2, 3, 4, 4)):
        cache.store(1, 2, 3, 4, 5, 60)
        assert cache.find(*other) is None
