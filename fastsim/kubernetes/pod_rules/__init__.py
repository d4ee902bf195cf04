"""What pods of Kubernetes may not do: affinity, gangs, limits, priorities, volumes.

In come pods and the objects that they name, out go constraints, groups and amounts of their rows.
Open ``node_affinity`` first.
"""
