"""The event loop, its rules and its waiting line."""
