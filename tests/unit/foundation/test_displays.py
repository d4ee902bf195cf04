"""Tables of notebooks: escaped, bounded, without colours of their own."""

from __future__ import annotations

import math

from fastsim.foundation.displays import LETTERS, ROWS, Completable, html_table


def test_texts_are_escaped_and_numbers_stand_to_the_right() -> None:
    text = html_table("<b>", ["a&b"], [["<script>", 1234567, 0.125, None, True]])
    assert "<script>" not in text and "&lt;script&gt;" in text and "&lt;b&gt;" in text and "a&amp;b" in text
    assert '<td style="text-align:right">1,234,567</td>' in text and ">0.125<" in text and ">True<" in text
    assert text.count("text-align:right") == 2


def test_a_table_is_small_and_has_no_colours() -> None:
    text = html_table("c", ["n"], [[k] for k in range(ROWS + 1000)])
    assert text.count("<tr style") == ROWS and "and 1,000 more rows" in text
    assert "#" not in text and "rgb" not in text and "background:transparent" in text
    assert "x" * (LETTERS - 1) + "…" in html_table("c", [], [["x" * 500]])
    assert ">nan<" in html_table("c", [], [[math.nan]])


class Shown(Completable):
    """A class with a member for users and one for engines."""

    for_engines = Completable.for_engines | {"inner"}
    outer, inner = 1, 2


def test_completion_leaves_out_members_for_engines_of_classes_and_of_objects() -> None:
    for shown in (Shown, Shown()):
        assert {"outer", "inner", "for_engines"} & set(dir(shown)) == {"outer"} and shown.inner == 2
