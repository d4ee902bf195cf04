# The parts that runs in rounds of both kinds keep alike.
from libc.stdint cimport int64_t
from fastsim_ext.rounds.cluster_metrics cimport Gauge
from fastsim_ext.rounds.job_table cimport GangTable
from fastsim_ext.rounds.leases cimport Leases
from fastsim_ext.rounds.round_log cimport Ledger

cdef bytes raw(const void* items, int64_t count, int64_t size)
cdef int fill(void* target, const unsigned char[::1] part, int64_t count, int64_t size) except -1
cdef tuple table_state(GangTable table)
cdef int table_back(GangTable table, numbers, parts) except -1
cdef tuple leases_state(Leases leases)
cdef tuple ledger_state(Ledger ledger)
cdef int ledger_back(Ledger ledger, numbers) except -1
cdef tuple gauge_state(Gauge gauge)
cdef int gauge_back(Gauge gauge, numbers, parts) except -1
