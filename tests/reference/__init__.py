"""The engines in plain Python, for comparison."""
