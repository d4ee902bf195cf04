# The parts that runs in rounds of both kinds keep alike.
from libc.stdint cimport int64_t
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.job_table cimport JobTable
from fastsim_ext.rounds.leases cimport Leases
from fastsim_ext.rounds.round_log cimport RoundLog

cdef bytes raw(const void* items, int64_t count, int64_t size)
cdef int fill(void* target, const unsigned char[::1] part, int64_t count, int64_t size) except -1
cdef tuple table_state(JobTable table)
cdef int table_back(JobTable table, numbers, parts) except -1
cdef tuple leases_state(Leases leases)
cdef tuple ledger_state(RoundLog ledger)
cdef int ledger_back(RoundLog ledger, numbers) except -1
cdef tuple gauge_state(ClusterMetrics gauge)
cdef int gauge_back(ClusterMetrics gauge, numbers, parts) except -1
