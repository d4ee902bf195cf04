"""Files, folders, HTTP, Ctrl-C, random numbers: independent of clusters.

Services that several packages above need. Files are complete or absent.
Open ``parquet`` first.
"""
