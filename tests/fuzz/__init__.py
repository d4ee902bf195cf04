"""Fuzzers: mutated inputs of every kind, each case in a worker process with a limit of time.

``python -m tests.fuzz --minutes 10`` draws cases until the time is up; ``tests/property/test_fuzz.py`` has a short
form.
"""
