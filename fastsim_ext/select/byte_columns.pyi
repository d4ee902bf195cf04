"""Columns whose figures and totals take one byte."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.select.score_columns import ScoreColumns

def table_of(plan: Mapping[str, Any]) -> type[ScoreColumns]:
    """The kind of ColumnTable that suits a plan; ``plan`` as in a Selector."""

class ByteScoreColumns(ScoreColumns):
    """The columns of a plan of one term that the memo keeps in a byte."""
