"""What needs luck: signals at random moments, fresh seeds, many processes on one folder.

``python -m tests.stress --minutes 30`` tries until the time is over and says the command that repeats each finding.
"""
