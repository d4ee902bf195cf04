"""The drive of every engine's loop: reasons to stop, handlers of stops, and budgets of work.

In comes a loop that advances, out goes a run that has reached its end.
Open ``drive`` first, then ``headway``.
"""
