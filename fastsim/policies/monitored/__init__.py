"""Policies that look at what GPUs report before they admit a pod.

In come readings and waiting pods, out goes who starts where.
Open ``admission`` first.
"""
