"""Devices of Kubernetes' nodes in every dialect: resources, slots, boards of HAMi.

In come nodes, out go the number and model of their devices, and the division of these into slots or instances.
Open ``node_devices`` first.
"""
