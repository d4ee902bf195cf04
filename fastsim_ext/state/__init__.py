"""Node, pod and event tables; the only writers of their columns.

In come changes one by one, out go rows and sums that are always up to date.
Open ``node_table`` first, then ``pod_table``.
"""
