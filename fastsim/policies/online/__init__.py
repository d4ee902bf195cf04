"""Placement policies: one file each, their weighted sum, scorers of users.

In come the parameters of a policy, out goes a plan: scores with weights, by name. What a score is worth is worked out
in ``fastsim_ext/scores``.
Open ``fgd`` first; a new policy is a copy of it, and a line in ``registry.MODULES``.
"""
