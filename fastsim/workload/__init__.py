"""Workloads: canonical pod streams and what makes them."""

from __future__ import annotations

from fastsim.workload.workload import Workload

__all__ = ["Workload"]
