"""README and guides as tests see them: their fenced blocks, and the commands in these."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "fastsim/guides").glob("*.md"))
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *GUIDES)}


def blocks(page: str, kind: str) -> list[str]:
    """The fenced blocks of one kind of a page, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGES[page], re.M | re.S)


def all_blocks(kind: str) -> list[tuple[str, str]]:
    """Page and text of every block of a kind."""
    return [(page, block) for page in PAGES for block in blocks(page, kind)]


def files(page: str) -> list[tuple[str, str]]:
    """Name and text of every file that a page shows; its name ends the line before the block."""
    return re.findall(r"`([\w.]+)`:\n\n```(?:toml|yaml)\n(.*?)^```$", PAGES[page], re.M | re.S)


def outputs_of_scripts() -> list[tuple[str, str]]:
    """Each script of a page that shows its output, and what it prints."""
    found = []
    for page in PAGES:
        for script in blocks(page, "python"):
            _, shown, after = PAGES[page].partition(f"{script}```\n\nIt prints:\n\n```text\n")
            if shown:
                found.append((script, after.partition("```")[0]))
    return found


def commands(page: str, kind: str) -> list[list[str]]:
    """The words of every ``fastsim`` command in blocks of a kind; several stand in a line with && between them."""
    lines = "".join(blocks(page, kind)).splitlines()
    if kind == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    parts = [shlex.split(part.strip(), comments=True) for line in lines for part in line.split("&&")]
    return [words for words in parts if words[:1] == ["fastsim"]]


def shown(page: str) -> list[tuple[list[str], list[str]]]:
    """The words of each command in ``console`` blocks, and the lines of its output that the page shows."""
    found: list[tuple[list[str], list[str]]] = []
    for line in "".join(blocks(page, "console")).splitlines():
        if line.startswith("$ "):
            found.append((shlex.split(line.removeprefix("$ ")), []))
        elif line.strip():
            found[-1][1].append(line)
    return found
