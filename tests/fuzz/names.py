"""Names that a user, a trace or another's cluster may have: of signs that mean something to some reader."""

from __future__ import annotations

import random
from typing import Any

import polars as pl

import fastsim as fs
from fastsim.simulation.simulate import run
from tests.hostile_names import CONTROLS, NAMES, hostile_cluster, hostile_pods

PLACE = "PLACE"
"""What a run is made with where names come."""
PARTS = (
    *NAMES, *CONTROLS, "</script", "<!--", "-->", "{{x}}", "${x}", "$", "|", "||", "\n", "\n\n", "\r", "\r\n", "\t",
    " ", "  ", "'", '"', '""', "\\", "\\n", "\\\\", "`", "```", "*", "**", "_", "[x](y)", "![", "]", "[/b]", "[red]",
    "[/", ":smile:", "[link=x]", "=1+1", "@SUM(A1)", "-1", "+1", "&amp;", "&", "&#60;", "%", "%s", "#", "# x", "~", "^",
    "{", "}", "} ", '"} 5', ",", ";", "/", "..", "../x", ".", "a", "b", "A", "null", "true", "~", "1e5", "0x1", "007",
    "- ", ": ", "---", "...", "!!x", "&a", "*a", "? ", "> ", "<<", "é", "e\u0301", "ß", "\u0130", "\u0646\u0635",
    "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u00a0", "\u0085", "\u2028", "\u2029", "\x00", "\x0b", "\x0c",
    "\x1c",
    "\x7f", "\ufffe", "\uffff", "\U0010ffff", "\U0001f9ea", "\U0001f468\u200d\U0001f469", "\u65e5\u672c",
    "\\end{tabular}", "\\\\ \\hline", "\\input{x}", "$x$", "<g>", "<title>", "style='x'", "on=x", "NaN", "(2)",
    " (2)", "-2", "x" * 90,
)  # fmt: skip
"""Parts of names."""

NEAR = (" (2)", " (1)", " ", "0", "-2", "\n", "\u200b")
"""What is added to a name for one that differs little."""


def name(draw: random.Random, surrogates: bool = False) -> str:
    """One name, which is not empty; seldom a very long one, and with lone surrogates if they can come."""
    if draw.random() < 0.1:
        return "".join(map(chr, (_code(draw) for _ in range(draw.randint(1, 9))))) or "x"
    text = "".join(draw.choice(PARTS) for _ in range(draw.choice((1, 1, 2, 2, 3, 5))))
    if draw.random() < 0.01:
        text *= 200
    if surrogates and draw.random() < 0.1:
        text += draw.choice(("\ud800", "\udfff", "\udc80x"))
    return text


def _code(draw: random.Random) -> int:
    code = draw.randrange(draw.choice((0x80, 0x300, 0x10000, 0x110000)))
    return code if not 0xD800 <= code < 0xE000 else 0x41


def several(count: int, draw: random.Random) -> list[str]:
    """Names that differ, in a few cases by a number or a blank."""
    found: list[str] = []
    while len(found) < count:
        one = name(draw)
        if found and draw.random() < 0.3:
            one = found[0] + draw.choice(NEAR)
        if one not in found:
            found.append(one)
    return found


def made_run() -> fs.Result:
    """A run whose nodes, pods, tenants and models have a name to put others in its place."""
    options: dict[str, Any] = {"telemetry": 3600.0, "sample_s": 600.0, "name": PLACE}
    return run(fs.Scenario(hostile_cluster(PLACE), hostile_pods(PLACE), "fgd", **options))


def renamed(result: fs.Result, name: str) -> fs.Result:
    """The run with another name in all tables and in its record."""
    frames = {key: _renamed_frame(frame, name) for key, frame in result.frames.items()}
    words = {"policy": name, "cluster": name, "workload": name, "name": name}
    return fs.Result(frames, {**result.provenance, "policy": name, "scenario": words}, result.timing, (name,))


def _renamed_frame(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.String).str.replace_all(PLACE, name, literal=True))
