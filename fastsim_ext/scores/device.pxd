# Which devices of a node are free, fit a share, or fit it best; sets of devices are 64-bit masks.
from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.types cimport Node

cdef enum:
    SPARE = 1024         # more than the milli of one device

cdef uint64_t device_idle(const Node* node, int count) noexcept nogil
cdef int device_idle_count(const Node* node) noexcept nogil
cdef int device_most(const Node* node) noexcept nogil
cdef int64_t device_free_milli(const Node* node) noexcept nogil
cdef uint64_t device_tightest(const Node* node, int milli) noexcept nogil
cdef uint64_t device_loosest(const Node* node, int milli) noexcept nogil
cdef int device_fit_count(const Node* node, int milli) noexcept nogil
cdef uint64_t device_nth_fit(const Node* node, int milli, int nth) noexcept nogil
cdef bint device_all_free(uint64_t gpus, uint64_t free, int count) noexcept nogil
