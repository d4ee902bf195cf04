"""Readings of GPUs: modelled, stored, exported and read back.

In come placements or files of other monitors, out go a table, OpenMetrics text, or jobs of the same usage.
Open ``telemetry`` first, for what is sampled, then ``reading_model``.
"""
