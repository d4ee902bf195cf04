"""Columns whose figures and totals take one byte."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.select.score_columns import ScoreColumns

def columns_class(plan: Mapping[str, Any]) -> type[ScoreColumns]:
    """The class of ScoreColumns for a plan; ``plan`` as in a Selector."""

class ByteScoreColumns(ScoreColumns):
    """The columns of a plan with one term, whose points take one byte in the memo."""
