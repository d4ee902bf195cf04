# The parts that runs in rounds of both kinds keep alike.
from libc.stdint cimport int64_t
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.job_table cimport JobTable
from fastsim_ext.rounds.leases cimport Leases
from fastsim_ext.rounds.round_log cimport RoundLog

cdef bytes raw_bytes(const void* items, int64_t count, int64_t size)
cdef int copy_in(void* target, const unsigned char[::1] part, int64_t count, int64_t size) except -1
cdef tuple table_state(JobTable table)
cdef int table_restore(JobTable table, numbers, parts) except -1
cdef tuple leases_state(Leases leases)
cdef tuple log_state(RoundLog log)
cdef int log_restore(RoundLog log, numbers) except -1
cdef tuple metrics_state(ClusterMetrics metrics)
cdef int metrics_restore(ClusterMetrics metrics, numbers, parts) except -1
