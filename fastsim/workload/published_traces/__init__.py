"""One file for each published trace that its table names: `import_jobs` reads the trace as it was published.

Open ``helios`` first.
"""
