"""Rounds from shares of the time (Gavel), and their ideal without rounds."""
