"""Result files of original simulators: their figures beside those of our runs.

A log or table that Gavel, Synergy, Sia, Pollux or FGD wrote comes in; figures under the names of our summary come out.
Open ``differences`` first.
"""
