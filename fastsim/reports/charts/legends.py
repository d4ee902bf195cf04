"""Names in charts: legends, labels and titles that leave the plot its room, however long and many the names are.

Widths of texts are estimates for fonts like Arial, a little too wide rather than too narrow.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

NARROW, BROAD = frozenset("iljtfrI.,:;'|!()[]/ -"), frozenset("mwMW@%&—…")
"""Letters that are narrower and broader than others."""
LEAST = 0.36
"""Width of a narrow letter, in sizes of a letter."""
SYMBOL = 26
"""Width of a symbol of a legend with the gaps around it, for letters of 11 points."""
BESIDE, TALLEST = 0.25, 12
"""Part of a picture's width and number of names up to which a legend stands beside its plot; others stand below it."""
GAP = 8
"""Between an axis and the legend below it."""
AXIS = 6.0
"""Width of the labels and the title of an axis, in sizes of a letter."""


def text_width(text: str, size: float) -> float:
    """Width of a text in letters of this size, in the same unit."""
    return size * sum(map(_letter, text))


def _letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF" or letter in BROAD:
        return 1.0
    return LEAST if letter in NARROW else 0.72 if letter.isupper() else 0.57


def lines_of(text: str, width: float, size: float) -> str | list[str]:
    """The text on as many lines as it needs: itself where it fits on one."""
    if text_width(text, size) <= width:
        return text
    letters = max(int(len(text) * width / text_width(text, size)), 8)
    return wrap(text, letters, break_on_hyphens=False)


def shortened(names: Sequence[str], width: float, size: float) -> list[str]:
    """The names, of which those broader than ``width`` lose their middle; different names stay different."""
    short = [_cut(name, width, size) for name in names]
    seen: dict[str, int] = {}
    distinct = []
    for name, cut in zip(names, short, strict=True):
        seen[cut] = seen.get(cut, 0) + 1
        number = f" ({seen[cut]})"
        numbered = cut != name and short.count(cut) > 1
        distinct.append(_cut(name, width - text_width(number, size), size) + number if numbered else cut)
    return distinct


def _cut(name: str, width: float, size: float) -> str:
    # No more letters fit than narrow ones, so a very long name is not tried at every length.
    letters = min(len(name), max(int(width / (LEAST * size)) + 1, 4))
    cut = name
    while text_width(cut, size) > width and letters > 3:
        letters -= 1
        cut = f"{name[: (letters + 1) // 2]}…{name[len(name) - letters // 2 :]}"
    return cut


def relabelled(names: Sequence[str], width: float, size: float) -> dict[str, str]:
    """``labelExpr`` of a legend or an axis, if a name is too broad for it; nothing otherwise."""
    short = shortened(names, width, size)
    if short == list(names):
        return {}
    listed, labels = json.dumps(list(names)), json.dumps(short)
    return {"labelExpr": f"indexof({listed}, datum.label) < 0 ? datum.label : {labels}[indexof({listed}, datum.label)]"}


def legend(names: Sequence[str], width: float, size: float = 11) -> dict[str, Any]:
    """Place, columns and labels of a legend for a picture of this width: beside the plot if it is small, else below.

    A legend below is as broad as the plot, and as high as it has to be.
    """
    broadest = max((text_width(name, size) for name in names), default=0.0)
    symbol = SYMBOL * size / 11
    if broadest + symbol <= BESIDE * width and len(names) <= TALLEST:
        return {"orient": "right", "columns": 1, "labelLimit": BESIDE * width}
    room = width - AXIS * size
    columns = max(1, min(len(names), int(room / (broadest + symbol))))
    limit = room / columns - symbol
    below = {"orient": "bottom", "columns": columns, "offset": GAP, "labelLimit": limit + symbol / 2}
    return below | relabelled(names, limit, size)
