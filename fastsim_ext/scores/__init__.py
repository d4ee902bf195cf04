"""Points of a node for a pod: pure functions."""
