"""How every engine's loop is driven: why it stops, what is done then, and how much work it may do.

In comes a loop that advances, out goes a run that has reached its end.
Open ``drive`` first, then ``headway``.
"""
