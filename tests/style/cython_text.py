"""Just enough reading of Cython text for the style tests: signatures, blocks and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEAD = re.compile(r"\s*(cdef|cpdef|def)\s(?!class\b)[^=(]*\(")
NAME = re.compile(r"(\w+)\s*\($")


@dataclass(frozen=True)
class Signature:
    """One function: where it starts (line number from 1), its kind, name, whole head and length in lines."""

    line: int
    kind: str
    name: str
    text: str
    lines: int
    docstring: bool
    body: range

    @property
    def nogil(self) -> bool:
        """Whether the body runs without the GIL."""
        return re.search(r"\bnogil:?$", self.text) is not None


def without_comment(line: str) -> str:
    """The line up to its comment; good enough, as no head carries a # in a text."""
    return line.split("#", 1)[0].rstrip()


def indent(line: str) -> int:
    """Leading blanks."""
    return len(line) - len(line.lstrip())


def block_end(lines: list[str], head_end: int, level: int) -> int:
    """Index after the last line that is indented deeper than ``level``."""
    end = head_end
    for i in range(head_end, len(lines)):
        if lines[i].strip():
            if indent(lines[i]) <= level and not lines[i].lstrip().startswith(("#", ")")):
                break
            end = i + 1
    return end


def signatures(path: Path) -> Iterator[Signature]:
    """Every function declared or defined in a .pyx or .pxd file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        found = HEAD.match(line)
        name = NAME.search(found.group(0)) if found else None
        if found is None or name is None or line.lstrip().startswith("cdef extern"):
            continue
        head, j = without_comment(line), i + 1
        while head.count("(") > head.count(")"):
            head, j = head + " " + without_comment(lines[j]).strip(), j + 1
        end = block_end(lines, j, indent(line))
        documented = j < len(lines) and lines[j].lstrip().startswith(('"""', 'r"""'))
        yield Signature(i + 1, found.group(1), name.group(1), head, end - i, documented, range(j + 1, end + 1))


def nogil_lines(path: Path) -> set[int]:
    """Line numbers of all code that runs without the GIL (``with gil`` islands left out)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    inside: set[int] = set()
    for signature in signatures(path):
        if signature.nogil:
            inside.update(signature.body)
    for word, add in (("with nogil", True), ("with gil", False)):
        for i, line in enumerate(lines):
            if line.strip().startswith(word):
                block = range(i + 1 if add else i, block_end(lines, i + 1, indent(line)))
                inside = inside | {n + 1 for n in block} if add else inside - {n + 1 for n in block}
    return inside
