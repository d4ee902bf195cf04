"""Texts in Markdown: nothing of a name becomes HTML, a link, a column or the end of a block."""

from __future__ import annotations

from fastsim.reports.markdown_text import code, code_block, plain


def test_plain_texts_are_no_html_links_or_columns() -> None:
    assert plain("<script>alert('a')</script>") == "&lt;script&gt;alert('a')&lt;/script&gt;"
    assert plain("a|b\n# c [x](javascript:y)") == "a\\|b # c \\[x\\](javascript:y)"
    assert plain("&lt;") == "&amp;lt;" and plain("\\<`") == "\\\\&lt;\\`"
    assert plain("0.1*pwr + 0.9*fgd") == "0.1*pwr + 0.9*fgd"


def test_code_ends_where_it_should() -> None:
    assert code("a<b>") == "`a<b>`" and code("a\n\n<b>") == "`a <b>`"
    assert code("a`<script>``") == "``` a`<script>`` ```"
    assert code_block("a\n```\n<script>", "bibtex") == "````bibtex\na\n```\n<script>\n````"
    assert code_block("a", "bibtex") == "```bibtex\na\n```"
