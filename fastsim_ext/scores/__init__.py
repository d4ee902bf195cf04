"""Points of a node for a pod: pure functions.

In come a node and a request, out go points. Nothing is kept.
Open ``points`` first.
"""
