"""Statistics over the seeds of runs: intervals, paired tests, the ranking of candidates."""
