"""Applications: the true speed and progress of training jobs, as opposed to a scheduler's estimates.

In come measured step times and recorded curves, out go seconds of a step and progress of an epoch.
Open ``application`` first.
"""
