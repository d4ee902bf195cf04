"""Files, folders, HTTP, Ctrl-C, random streams: knows nothing of clusters.

What the packages above would otherwise each have of their own. Files are complete or absent.
Open ``parquet`` first.
"""
