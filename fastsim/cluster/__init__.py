"""Nodes: their table, their types, clusters as published.

In come tables, presets, texts and snapshots, out goes a cluster: checked rows and the watts they draw.
Open ``cluster`` first, then ``node_table``.
"""
