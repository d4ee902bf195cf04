"""Files, folders, HTTP, Ctrl-C, random streams: knows nothing of clusters."""
