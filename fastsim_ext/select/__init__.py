"""One decision: by scan, and by index with the same answer."""
