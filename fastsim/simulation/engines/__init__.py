"""The scenario of each engine, prepared and played.

In come a scenario and its policy, out goes a ``PreparedRun``; playing it gives a result. ``rounds`` is for shares and
orders, and for jobs without rounds.
Open ``engine`` first, then ``pods``.
"""
