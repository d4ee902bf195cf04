"""Definitions of all figures, and an independent recomputation of a run's figures from them.

In come tables of a run and its inputs, out go differences. Nothing of the engines takes part.
Open ``metric_definitions`` first, then ``audit``.
"""
