"""The working halves of ``adaptive``: who gets which GPUs in a round.

In comes a view of the jobs with what they believe of their speed, out go places on nodes.
Open ``configurations`` first, then ``sia_decider``.
"""
