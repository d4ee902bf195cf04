"""Kubernetes objects to rows of nodes and pods; knows no Cluster and no Workload.

In come YAML, JSON and folders, out go rows and notices of what is not honoured.
Open ``snapshot`` first, then ``nodes`` and ``pods``.
"""
