"""One file per public trace, and the pods of a Kubernetes snapshot.

In come files as published, out goes a workload; nothing is repaired silently.
Open ``openb`` first.
"""
