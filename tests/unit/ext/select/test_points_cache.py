"""Answers found again: only ever those of the same question."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from fastsim_ext.select.points_cache import PointsCache

Question = tuple[int, int, int, int, int]
questions = st.tuples(
    st.integers(0, 2), st.sampled_from((0, 1, 2**31 - 1)), st.sampled_from((0, 1, 2**15 - 1)),
    st.sampled_from((0, 1, 64)), st.sampled_from((0, 1, 1000)),
)  # fmt: skip


@given(st.lists(st.tuples(questions, st.integers(0, 100)), max_size=60))
def test_an_answer_is_the_last_one_to_its_question_or_none(told: list[tuple[Question, int]]) -> None:
    answers, plain = PointsCache(), dict[Question, int]()
    for question, points in told:
        assert answers.find(*question) in (None, plain.get(question))
        answers.keep(*question, points)
        plain[question] = points
        assert answers.find(*question) == points


def test_nothing_is_known_at_first() -> None:
    assert PointsCache().find(0, 0, 0, 0, 0) is None


def test_each_part_of_a_question_counts() -> None:
    answers = PointsCache()
    answers.keep(1, 2, 3, 4, 5, 60)
    for other in ((0, 2, 3, 4, 5), (1, 1, 3, 4, 5), (1, 2, 2, 4, 5), (1, 2, 3, 3, 5), (1, 2, 3, 4, 4)):
        answers.keep(1, 2, 3, 4, 5, 60)
        assert answers.find(*other) is None
