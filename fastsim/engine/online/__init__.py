"""Pods placed one by one.

In come a cluster, a stream of pods and a plan, out go rows of events, stays and pods. The loop itself is compiled.
Open ``plan`` first: policies plug in there. Then ``run``.
"""
