"""One decision at a time: why it was taken, taken by an agent, lent to kube-scheduler.

In come a scenario and the number of a pod, or a cluster as it is now; out go reasons, points of nodes, rewards.
Open ``explain`` first; ``rl_environment`` is for agents, ``kube_extender`` for Kubernetes.
"""
