"""Workloads: canonical pod streams and what makes them."""
