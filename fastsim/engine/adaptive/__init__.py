"""Rounds of jobs that adapt (Sia, Pollux)."""
