"""Compiled floors of fastsim."""
