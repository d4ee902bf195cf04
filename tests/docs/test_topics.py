"""Guides and README answer what a newcomer looks for: each topic by words that its answer cannot do without."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES

TOPICS = {
    "explain a run of one's own data": r"explain\(|fastsim explain",
    "from a data frame to a figure": r"(?i)my data frame|own data frame|your data frame",
    "jobs without durations": r"(?i)without durations?",
    "a cluster of several models in a text": r"mix\?[a-z0-9=&]*a100",
    "processes that are forked": r"\bspawn\b|forked",
    "numba in a scorer": r"numba",
    "deadlines of pods": r"(?i)deadlines?[^.]*pods|pods[^.]*deadline",
    "another policy on adaptive jobs": r"served\(order=las",
    "the speed that demo prints beside that of the tables": r"the speed that `fastsim run` and `demo` print",
}
"""What was looked for, and a pattern of the answer."""


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_answers_what_is_looked_for(topic: str) -> None:
    assert [page for page, text in PAGES.items() if re.search(TOPICS[topic], text)]
