# The parts that adaptive jobs keep alike.
from libc.stdint cimport int64_t
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics

cdef bytes raw_bytes(const void* items, int64_t count, int64_t size)
cdef int copy_in(void* target, const unsigned char[::1] part, int64_t count, int64_t size) except -1
cdef tuple united(list states)
cdef tuple metrics_state(ClusterMetrics metrics)
cdef int metrics_restore(ClusterMetrics metrics, numbers, parts) except -1
