"""Linear, integer and multiple-choice programs; know no jobs."""
