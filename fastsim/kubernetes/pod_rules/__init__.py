"""Rules about pods of Kubernetes: affinity, gangs, limits, priorities, volumes.

In come pods and the objects that they refer to, out go constraints, groups and amounts for their rows.
Open ``node_affinity`` first.
"""
