"""Rounds in an order, with CPUs and memory (Synergy)."""
