"""Kubernetes objects to rows of nodes and pods; knows no Cluster and no Workload."""
