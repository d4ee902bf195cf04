"""What every figure means, and the figures of a run worked out again from that.

In come tables of a run and its inputs, out go differences. Nothing of the engines takes part.
Open ``metric_definitions`` first, then ``audit``.
"""
