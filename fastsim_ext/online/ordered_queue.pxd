# The waiting line of pods in an order: a sort key for every entry.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.sorting cimport MOST_TERMS, KeyInputs, OrderContext
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef enum:
    ORDERED = 8          # the first queue rule that is an order: RULES of fastsim.engine.online.plan come before


@cython.final
cdef class OrderedQueue:
    # not saved: options, or rebuilt from the waiting pods
    cdef NodeTable nodes
    cdef WorkTable work
    cdef PodMembership membership
    cdef int32_t terms, room
    cdef int32_t[MOST_TERMS] term
    cdef double[MOST_TERMS] sign
    cdef const double[::1] level_s
    cdef bint moving, known      # keys change with time; they were made once
    cdef bint reads      # columns of the workload
    cdef int64_t[3] cap          # what the nodes had then: milli-CPU, MiB, milli-GPU
    cdef OrderContext context
    cdef double* keys            # by slot, MOST_TERMS each
    cdef double* value           # of columns of the workload, by slot, MOST_TERMS each
    cdef int32_t* rows
    cdef int32_t* spare
    cdef int reserve(self) except -1 nogil
    cdef int keep(self, int32_t slot, const double* value) except -1 nogil
    cdef bint current(self, double now) noexcept nogil
    cdef int renew(self, double now) except -1 nogil
    cdef int join(self, int32_t slot, double now) except -1 nogil
    cdef KeyInputs inputs(self, int32_t slot) noexcept nogil
    cdef double least(self, int32_t slot, int32_t k) noexcept nogil
    cdef void measure(self, int32_t slot) noexcept nogil
