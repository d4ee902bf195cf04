"""Rules that pods of Kubernetes bring: affinity, gangs, limits, priorities, volumes."""
