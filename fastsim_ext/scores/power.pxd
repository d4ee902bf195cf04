# Power draw of a node and the score that comes from it; all in integer milliwatts.
from libc.stdint cimport int32_t, int64_t, uint64_t
from fastsim_ext.types cimport Node, Pod

cdef int64_t power_cpu(const Node* node, int64_t cpu_left) noexcept nogil
cdef int64_t power_gpu(const Node* node) noexcept nogil
cdef int64_t power_mig(const Node* node, int64_t gpus, int64_t used) noexcept nogil
cdef void power_savings(const Node* node, const int32_t* cpu__c, const int32_t* milli__c, const int32_t* num__c,
                        int first, int last, const int32_t* skip__c, int32_t* out__c) noexcept nogil
cdef int64_t power_points(const Node* node, const Pod* pod) noexcept nogil
cdef int64_t power_saved(const Node* node, const Pod* pod, uint64_t* gpus) noexcept nogil
