"""Columns of plans whose totals are normalised by extremes over the nodes."""

from fastsim_ext.select.score_columns import ScoreColumns

class NormalisedScoreColumns(ScoreColumns):
    """Also stores raw points, and counts each value among the nodes that fit, for the extremes."""
