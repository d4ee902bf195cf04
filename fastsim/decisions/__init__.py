"""One decision at a time: why it was taken, taken by an agent, lent to kube-scheduler."""
