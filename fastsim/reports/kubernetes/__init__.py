"""Runs as Kubernetes objects: pods bound to their nodes, and the nodes.

Inputs are saved runs and the objects that their workloads were read from, outputs YAML and JSON. Open ``export`` first.
"""
