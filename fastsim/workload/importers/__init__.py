"""One file per system that is rebuilt here, the pods of a Kubernetes snapshot, and a folder of published traces.

In come files as published, out goes a workload; nothing is repaired silently.
Open ``openb`` first.
"""
