"""Workloads of Kubernetes that have pods: roles of gangs, owners of pods, what is finished.

In come objects, out go the roles of a workload, and the pods that it has already.
Open ``owners`` first.
"""
