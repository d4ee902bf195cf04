"""Columns of plans whose totals depend on extremes over the nodes."""

from fastsim_ext.select.score_columns import ScoreColumns

class NormalisedScoreColumns(ScoreColumns):
    """Also keeps raw points, and how often each occurs among the nodes that fit, so that both ends are known."""
