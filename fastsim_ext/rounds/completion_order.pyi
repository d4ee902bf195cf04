"""The order in which a round's work is credited: the last to finish first, single jobs before pairs, then ids."""
