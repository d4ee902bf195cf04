"""The papers again: one module per paper, or per pair that shares a protocol.

In come recorded traces, out go tables and charts beside the printed numbers of ``fastsim/experiments/published``.
Open ``papers`` first: it lists them. ``reproduction`` is what all of them share.
"""
