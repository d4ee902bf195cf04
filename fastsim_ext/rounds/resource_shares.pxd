# CPU, memory and storage of a server that a job gets beside its GPUs.
cimport cython
from libc.stdint cimport int32_t, uint8_t
from fastsim_ext.rounds.job_table cimport Job, JobTable
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob, OrderedJobTable
from fastsim_ext.rounds.server_allocation cimport ServerAllocation

cdef enum:  # Mechanism: order of fastsim.engine.orders.plan.MECHANISMS
    FAIR, GREEDY, TUNE, OPT


@cython.final
cdef class ResourceShares:
    cdef JobTable table
    cdef OrderedJobTable ordered_jobs
    cdef ServerAllocation allocation
    cdef const double[:, ::1] step_s__kg     # by kind and model, seconds of a step at the fair share; 0: cannot run
    cdef const uint8_t[::1] packed__k        # by kind: gangs stay together if they can
    cdef int mechanism
    cdef bint raises, sweeping   # switches: demotion_raises, reclaim_sweeps
    cdef readonly long long reclaims, demotions
    cdef bint allot(self, int32_t row) noexcept nogil
    cdef bint allot_again(self, int32_t row, int32_t model, const int32_t* gpus) noexcept nogil
    cdef bint tune_again(self, int32_t row, int32_t model) noexcept nogil
    cdef void commit_chosen(self, int32_t row, int32_t model) noexcept nogil
    cdef bint allot_model(self, int32_t row, int32_t model) noexcept nogil
    cdef bint tune(self, int32_t row, int32_t model) noexcept nogil
    cdef bint fair_need(self, const OrderedJob* entry, int32_t model, int32_t num_gpu, double* need,
                        bint full) noexcept nogil
    cdef void reclaim(self, int32_t model, int32_t num_gpu, const double* need) noexcept nogil
    cdef void reclaim_from(self, int32_t server, int32_t num_gpu, int32_t gpus, const double* need) noexcept nogil
    cdef bint to_fair_share(self, int32_t row) noexcept nogil
    cdef void sort(self, int32_t server) noexcept nogil
    cdef bint before(self, int32_t row, int32_t other) noexcept nogil
