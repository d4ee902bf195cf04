"""Names and texts of runs in Markdown: shown as they are, never read as HTML, links or columns."""

from __future__ import annotations

import re

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_RUNS_OF_TICKS = re.compile("`+")


def plain(text: str) -> str:
    """A text on one line, outside of code; stars stay, since policies are weighted sums."""
    line = re.sub(r"([\\`|\[\]])", r"\\\1", " ".join(text.split()))
    return line.translate(_HTML)


def code(text: str) -> str:
    """A text on one line as code, between more backticks than it has in a row."""
    line = " ".join(text.split())
    fence = "`" * (_longest(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def code_block(text: str, language: str) -> str:
    """Lines as a block of code, which no line of theirs can end."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest(text: str) -> int:
    return max(map(len, _RUNS_OF_TICKS.findall(text)), default=0)
