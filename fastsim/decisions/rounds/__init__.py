"""One round of a run of jobs explained: what the policy computed, what was free, and why each job ran or waited.

In come a scenario, the time of a round and jobs, out goes a table with a row for each job and GPU model, job, or job
and configuration. Open ``round_explanation`` first; ``replayed_round`` repeats the run up to the round.
"""
