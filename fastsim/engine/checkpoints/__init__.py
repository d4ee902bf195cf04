"""Checkpoints of every engine: the state of a run, its file and folder, when one is due, who writes it.

In comes the state that an engine gives, out goes a file from which a resumed run writes the same bytes.
Open ``state`` first, then ``writer``.
"""
