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
    cdef double[:, ::1] unusable  # scratch, two rows a kind
    cdef Typical typical
    cdef Groups groups           # the same workload by device request
    cdef Sums sums
    cdef object columns          # the arrays behind ``groups``
cdef class NodeTable:
    cdef readonly int count, width, n_tags, n_full     # n_full: nodes without a pod slot left; capacity, by node:
    cdef const int64_t[::1] cpu_cap, mem_cap, gpu_idle_mw, gpu_peak_mw, cpu_idle_mw, cpu_peak_mw
    cdef const int32_t[::1] num_gpu, model, max_pods, cores, mig_gpus         # mig_gpus: partitioned, not in num_gpu
    cdef int64_t[::1] cpu_left, mem_left     # state, by node; columns that are not searched may have strides
    cdef int64_t[:] cpu_mw, gpu_mw, mig_used         # power, derived; mig_used: milli of instances
    cdef int32_t[::1] pods, spare, changed   # spare, derived: SPARE times idle devices, plus the most left on one
    cdef int32_t[:] free                     # milli-GPU
    cdef int32_t[:, :] gpu_left__ng, tags__nt
    cdef uint8_t[::1] present
    cdef uint8_t[:] listed                   # whether the node is in ``changed``, which has no node twice
    cdef double[:] frag, before              # frag: NaN until computed; before: the same, summed in another order
    cdef int64_t[:, :] frag__nk
    cdef Totals total
    cdef TypicalTable target
    cdef Node* records           # by node: the columns again, one record a node
    cdef uint16_t* packed_views  # by node: the rows of its view, see grouped_pack
    cdef (void*)[3] memory       # allocations of records, packed_views (both aligned) and one view
    cdef bint watched, partitioned, trusted  # changes are listed; any GPU is partitioned; verify() skips frag
    cdef int n_changed, viewed   # viewed: the node of the unpacked view, or -1
    cdef int check_node(self, int n) except -1
    cdef Node at(self, int n) noexcept nogil
    cdef Node from_columns(self, int n) noexcept nogil
    cdef void prefetch(self, int n) noexcept nogil
    cdef Node exactly(self, int n) noexcept nogil
    cdef void list_change(self, int n) noexcept nogil
    cdef void load_view(self, const Node* node, int n, View* view) noexcept nogil
    cdef int lasting_obstacle(self, const Pod* pod) noexcept nogil
    cdef void allocate(self, int n, const Pod* pod, uint64_t gpus) noexcept nogil
    cdef void release(self, int n, const Pod* pod, uint64_t gpus) noexcept nogil
    cdef void shift(self, int n, const Pod* pod, uint64_t gpus, int sign) noexcept nogil
    cdef void add_node(self, int n) noexcept nogil
    cdef void remove_node(self, int n) noexcept nogil
    cdef void count_node(self, int n, int64_t sign) noexcept nogil
    cdef void count_partitions(self, int n, int64_t sign, bint used) noexcept nogil
    cdef void refresh(self, int n) noexcept nogil
    cpdef int verify(self) except -1
