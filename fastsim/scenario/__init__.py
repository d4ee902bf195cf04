"""Everything that decides a run, as values and texts."""
