"""Samples of GPUs during a run or after it: profiles of pods, readings, the table of telemetry.

In come starts and ends of stays on devices, out go rows of the telemetry table.
Open ``telemetry_sampler`` first, then ``placement_telemetry``.
"""
