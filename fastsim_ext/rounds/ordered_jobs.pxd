# Demand, allocation and service of jobs in ordered rounds, row by row beside the job table.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.sorting cimport MOST_TERMS, OrderContext

cdef enum:
    RESOURCES = 3        # milli-CPU, MiB of memory, MB/s of storage

cdef struct OrderedJob:
    double[RESOURCES] need       # of the whole gang, for which it runs at its own speedup
    double[RESOURCES] share      # in this round
    double step_s                # of one step at the fair share, on the best GPU model
    double own_speedup, speedup  # over the fair share: with what it needs; now
    double attained_s            # running time so far, not times GPUs
    double last_s                # end of the last round it ran in; its arrival before that
    int64_t priority             # 1: it has waited for too long
    int32_t model, first_part, n_parts   # GPU model; its first server part, or -1; how many it has
    int32_t plain                # it progresses as with its fair share in this round


@cython.final
cdef class OrderedJobTable:
    cdef OrderedJob* entries
    cdef int32_t* order          # rows in the order of the last round, newcomers at the end
    cdef int32_t* spare
    cdef double* keys            # terms for each row
    cdef int32_t n, room, terms
    cdef int32_t[MOST_TERMS] term
    cdef double[MOST_TERMS] sign
    cdef const double[::1] level_s       # GPU seconds at which a job goes to the next level
    cdef int reserve(self, int32_t n) except -1 nogil
    cdef int enter(self, const OrderedJob* new) except -1 nogil
    cdef void compact(self, JobTable table) noexcept nogil
    cdef void arrange(self, JobTable table, const OrderContext* context) noexcept nogil
    cdef void measure(self, const Job* job, const OrderedJob* entry, const OrderContext* context,
                      double* key) noexcept nogil
