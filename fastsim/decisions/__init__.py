"""Single decisions: explained after a run, taken by an agent, or answered to kube-scheduler.

Inputs are a scenario and the number of a pod, or a live cluster; outputs are reasons, points of nodes, rewards.
Open ``explain`` first; ``agents.environment`` is for agents, ``kube_extender`` and ``what_if`` for Kubernetes.
"""
