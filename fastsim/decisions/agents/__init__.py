"""Gymnasium environments in which an agent decides: the node of a pod, or the next pod of a waiting line.

Inputs are a cluster, a workload and rewards; outputs are observations, masks, rewards.
Open ``environment`` first; ``queue_environment`` is about waiting lines.
"""
