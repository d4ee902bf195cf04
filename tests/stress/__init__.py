"""Randomised tests: signals at random moments, fresh seeds, many processes on one folder.

``python -m tests.stress --minutes 30`` runs trials until the time is over and prints a command that repeats a finding.
"""
