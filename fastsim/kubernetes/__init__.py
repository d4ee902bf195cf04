"""Kubernetes objects to rows of nodes and pods; independent of Cluster and Workload.

In come YAML, JSON and folders, out go rows and notices of what is not honoured.
Open ``snapshot`` first, then ``nodes`` and ``pods``.
"""
