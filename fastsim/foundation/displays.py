"""Displays of objects in a notebook: small HTML tables, charts, and the members that completion offers.

Tables have no colours of their own, so that they can be read on light and on dark pages. Charts are drawn by a package
above those whose objects have ``plot``; ``fastsim`` itself names the function that draws (`drawn_by`).
"""

TYPE_CHECKING = False  # ``fastsim`` loads this module first, and without ``typing``
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, ClassVar, Protocol

    class Drawing(Protocol):
        """A function that draws an object."""

        def __call__(self, shown: Any, chart: str | None = None, **options: Any) -> Any:
            """The named chart of an object, or its first one."""


ROWS, LETTERS = 10, 80
"""Most rows of a table and letters of a cell; what is beyond is counted, or cut."""
_LINE = "border-bottom:1px solid currentColor"
_TABLE = "border-collapse:collapse;background:transparent;color:inherit;font-variant-numeric:tabular-nums"


_drawings: "list[Drawing]" = []


def drawn_by(drawing: "Drawing") -> None:
    """Name the function that draws the charts of ``plot``; the last one counts."""
    _drawings[:] = [drawing]


def chart_of(shown: "Any", chart: str | None, **options: "Any") -> "Any":
    """The chart of an object, drawn by the function that `drawn_by` named."""
    return _drawings[-1](shown, chart, **options)


def html_table(caption: str, heads: "Sequence[str]", rows: "Iterable[Sequence[Any]]") -> str:
    """A small table for a notebook: every text escaped, numbers to the right, at most `ROWS` rows."""
    from html import escape

    every = list(rows)
    parts = [f'<table style="{_TABLE}"><caption style="text-align:left;color:inherit">{escape(caption)}</caption>']
    if heads:
        cells = "".join(f'<th style="{_LINE};text-align:left">{escape(head)}</th>' for head in heads)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for row in every[:ROWS]:
        cells = "".join(f'<td style="text-align:{_side(value)}">{escape(_text(value))}</td>' for value in row)
        parts.append(f'<tr style="background:transparent">{cells}</tr>')
    parts.append("</tbody></table>")
    if len(every) > ROWS:
        parts.append(f"<small>and {len(every) - ROWS:,} more rows</small>")
    return "".join(parts)


def _side(value: "Any") -> str:
    return "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"


def _text(value: "Any") -> str:
    """A cell: whole numbers with separators, others to four digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


class Completed(type):
    """The type of classes whose ``for_engines`` are members that completion leaves out, of the class as of objects."""

    for_engines: "frozenset[str]"

    def __dir__(cls) -> "Iterable[str]":
        return [name for name in super().__dir__() if name not in cls.for_engines]


class Completable(metaclass=Completed):
    """A class that completion shows without its members for engines; so are its objects."""

    for_engines: "ClassVar[frozenset[str]]" = frozenset({"for_engines"})

    def __dir__(self) -> "Iterable[str]":
        return [name for name in super().__dir__() if name not in self.for_engines]
