# Node columns and their running totals; the only writer of node state.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from fastsim_ext.scores.frag_grouped cimport Groups, View
from fastsim_ext.scores.frag_sums cimport Sums
from fastsim_ext.types cimport FRAG_CLASSES, Kind, Node, Pod, Typical
cdef struct Totals:              # exact sums over the nodes that are present
    int64_t nodes_used, gpus_of_used_nodes, gpus_used    # with a GPU in use or CPU taken; all their GPUs; those in use
    int64_t cpu_alloc, mem_alloc, gpu_alloc      # milli-CPU, MiB, milli-GPU
    int64_t cpu_cap, mem_cap, gpu_cap            # the same of what is present
    int64_t[FRAG_CLASSES] frag   # typical count x milli-GPU
    int64_t cpu_mw, gpu_mw       # milliwatts
cdef class TypicalTable:
    cdef const int64_t[::1] cpu, count
    cdef const int32_t[::1] kind, level_milli
    cdef const Kind[::1] kinds
    cdef const double[::1] freq
    cdef int32_t[::1] fit        # scratch of the kernels, one entry a level
    cdef int64_t[::1] small
    cdef double[:, ::1] spoilt   # scratch, two rows a kind
    cdef Typical typical
    cdef Groups groups           # the same workload by device request
    cdef Sums sums
    cdef object kept             # the arrays behind ``groups``
cdef class NodeTable:
    cdef readonly int count, width, n_tags, n_full     # n_full: nodes with all pods they may have; capacity, by node:
    cdef const int64_t[::1] cpu_cap, mem_cap, gpu_idle_mw, gpu_peak_mw, cpu_idle_mw, cpu_peak_mw
    cdef const int32_t[::1] num_gpu, model, max_pods, cores, mig_gpus         # mig_gpus: partitioned, not in num_gpu
    cdef int64_t[::1] cpu_left, mem_left     # state, by node; what is not searched may lie in rows
    cdef int64_t[:] cpu_mw, gpu_mw, mig_used         # power follows; mig_used: milli of instances
    cdef int32_t[::1] pods, spare, changed   # spare follows: SPARE times idle devices, plus the most on one
    cdef int32_t[:] free                     # milli-GPU
    cdef int32_t[:, :] gpu_left__ng, tags__nt
    cdef uint8_t[::1] present
    cdef uint8_t[:] listed                   # whether it is in ``changed``, where no node is twice
    cdef double[:] frag, before              # frag: NaN until asked for; before: the same, in another order
    cdef int64_t[:, :] frag__nk
    cdef Totals total
    cdef TypicalTable target
    cdef Node* records           # by node: the columns once more, side by side
    cdef uint16_t* looks         # by node: what the target's groups find, see grouped_pack
    cdef (void*)[3] held         # the memory of records and looks, which begin with a cache line; of one view
    cdef bint watched, parted, trusted   # changes are read; any GPU is partitioned; verify() sums no fragmentation
    cdef int n_changed, viewed   # viewed: the node whose view that is, or -1
    cdef int known(self, int n) except -1
    cdef Node at(self, int n) noexcept nogil
    cdef Node from_columns(self, int n) noexcept nogil
    cdef void expect(self, int n) noexcept nogil
    cdef Node exactly(self, int n) noexcept nogil
    cdef void list_change(self, int n) noexcept nogil
    cdef void look(self, const Node* node, int n, View* view) noexcept nogil
    cdef bint could_host(self, const Pod* pod) noexcept nogil
    cdef void take(self, int n, const Pod* pod, uint64_t gpus) noexcept nogil
    cdef void give(self, int n, const Pod* pod, uint64_t gpus) noexcept nogil
    cdef void shift(self, int n, const Pod* pod, uint64_t gpus, int sign) noexcept nogil
    cdef void bring(self, int n) noexcept nogil
    cdef void withdraw(self, int n) noexcept nogil
    cdef void weigh(self, int n, int64_t sign) noexcept nogil
    cdef void weigh_parts(self, int n, int64_t sign, bint used) noexcept nogil
    cdef void refresh(self, int n) noexcept nogil
    cpdef int verify(self) except -1
