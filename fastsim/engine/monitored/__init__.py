"""Containers that share GPUs, under a scheduler that reads metrics."""
