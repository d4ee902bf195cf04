# The online engine with decisions from outside: it stops before each pod that some node can host.
from libc.stdint cimport int64_t
from fastsim_ext.online.loop cimport OnlineLoop

cdef enum:  # Term: order of fastsim.decisions.agents.environment.REWARDS
    PLACED, ALLOCATION, FRAGMENTATION, POWER

cdef class SteppedLoop(OnlineLoop):
    cdef readonly int action             # the node for the pod that arrives next; -1: the plan's own choice
    cdef readonly int count              # nodes that can host it
    cdef const double[::1] reward__t     # weights of placed, allocated GPUs, fragmented GPUs, kW
    cdef unsigned char[::1] stale__n     # nodes that changed since they were looked at
    cdef int64_t most_cpu, most_mem      # of any node
    cdef int64_t typical_count                    # typical count that fragmentation is measured in
    cdef int next_decision(self) except -1 nogil
    cdef int act(self, int node, double* reward) except -1 nogil
    cdef double value(self) noexcept nogil
    cdef double worth(self, int term) noexcept nogil
    cdef void observe(self, float[:, ::1] node__nf, float[::1] pod__f, signed char[::1] fits__n) noexcept nogil
    cdef void observe_pod(self, int cls, float* pod__f) noexcept nogil
    cdef void observe_nodes(self, float[:, ::1] node__nf) noexcept nogil
