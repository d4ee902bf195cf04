"""Speeds of jobs: rates by GPU model, sensitivities to CPU and memory, goodput.

In come tables of measurements, out go steps per second of a job where it stands.
Open ``oracle`` first, then ``sensitivity`` and ``goodput``.
"""
