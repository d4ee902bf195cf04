"""Devices of Kubernetes' nodes in every dialect: resources, slots, boards of HAMi.

In come nodes, out go how many devices of which model they have, and how these are divided.
Open ``node_devices`` first.
"""
