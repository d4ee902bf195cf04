"""Policies for jobs that share GPUs over time: which part of each GPU model every job should have."""
