"""Devices of Kubernetes' nodes: names of resources, slots, boards."""
