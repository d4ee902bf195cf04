"""Reproductions of papers: one module per paper, or per pair that shares a protocol.

Inputs are recorded or generated traces; outputs are tables and charts beside the printed numbers of
``fastsim/experiments/published``. Open ``papers`` first: it lists them. ``reproduction`` is shared by all.
"""
