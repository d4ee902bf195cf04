"""Policies of the rounds engine: which share of the time each job spends on each GPU model. One family per file."""
