"""Synthetic workloads: one recipe per file, and how they draw."""
