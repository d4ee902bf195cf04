"""Single charts, and what all of them need."""
