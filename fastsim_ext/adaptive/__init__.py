"""Rounds of adaptive jobs, goodput, genetic search."""
