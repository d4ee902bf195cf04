"""Readings of GPUs: how they are made up, kept, exported and read back.

In come placements or files of other monitors, out go a table, OpenMetrics text, or jobs that use as much.
Open ``telemetry`` first: it says what is sampled. Then ``reading_model``.
"""
