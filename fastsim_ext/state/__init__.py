"""Node, pod and event tables; the only writers of their columns."""
