"""Pods and jobs as streams of record batches.

In come files, generators and snapshots, out go batches in the order of arrival, checked row by row.
Open ``workload`` first, then ``schema``.
"""

from __future__ import annotations

from fastsim.workload.workload import Workload

__all__ = ["Workload"]
