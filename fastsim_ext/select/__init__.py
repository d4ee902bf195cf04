"""One decision: by scan, and by index with the same answer.

In come a pod class and the node table, out goes a node.
Open ``scan`` first: ``indexed`` must say the same.
"""
