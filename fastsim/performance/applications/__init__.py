"""Applications: what training jobs really do, whatever a scheduler believes.

In come measured step times and recorded curves, out go seconds of a step and progress of an epoch.
Open ``application`` first.
"""
