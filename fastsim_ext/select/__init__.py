"""One decision: a node for a pod, by a scan of all nodes or by an index.

In come a pod class and the node table, out goes a node.
Open ``scan`` first: ``indexed`` must choose the same node.
"""
