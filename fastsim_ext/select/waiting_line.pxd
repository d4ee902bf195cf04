# The waiting line as a search tree, and the nodes that were freed since all of the line was tried.
cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from fastsim_ext.select.scan cimport NodeFilter
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef enum:
    NEEDS = 3         # requests for no device, for a share of one, for whole ones
    MOST_TREES = 32      # priorities in the line; with more of them every pod is tried
    MOST_FREED = 32      # nodes; with more of them every pod is tried

cdef enum:  # order of the line
    BY_JOINING, BY_PRIORITY, BY_KEY

cdef struct Least:       # no more than the smallest requests below a cell, in few bytes; EMPTY if there are none
    int32_t cpu, mem, gpu                # milli-CPU; MiB; milli-GPU of a share, or whole devices
    uint32_t models                      # those that any pod takes: the bits of both halves of their set
    float lasts                          # estimated seconds; 0 without a reservation

cdef struct LineTree:    # the pods of one priority in the order in which they joined
    int32_t priority
    int32_t room, used   # positions, a power of two; those that were given away
    int32_t alive        # pods in the line
    int32_t* slot        # by position, -1: the pod has left
    Least* least         # by cell and need of devices; cell c has the children 2c and 2c + 1, leaves begin at ``room``

cdef struct FreeRoom:    # of one freed node
    double until                         # second after which a pod must not last, or infinite
    uint32_t models                      # the bit of the node's model, as in Least; all bits if it has none
    int64_t cpu, mem
    int64_t[NEEDS] gpu                # 0; the largest share left on a device; devices that are wholly free
    int32_t node


@cython.final
cdef class WaitingLine:
    # not saved: rebuilt from the waiting pods, and every pod is tried then
    cdef NodeTable nodes
    cdef WorkTable work
    cdef PodMembership membership        # None without gangs
    cdef readonly bint searchable        # the pods that do not fit can be found without trying them
    cdef readonly int64_t searches       # retries in which only the freed nodes were looked at
    cdef bint tried                      # no pod of the line fits a node that is not among ``freed``
    cdef bint reserves                   # the first pod that fits nowhere has a reservation
    cdef int order, n_trees, n_freed, n_rooms
    cdef LineTree[MOST_TREES] trees      # by falling priority
    cdef int32_t* position               # by slot, -1: not in a tree
    cdef int32_t room                    # for slots
    cdef int32_t[MOST_FREED] freed
    cdef FreeRoom[MOST_FREED + 1] rooms      # of the freed nodes that can take a pod
    cdef FreeRoom beside                 # of the reserved node, for pods that last longer than until the reservation
    cdef double now, reserved_s          # begin of the search and of the reservation
    cdef int32_t reserved_node, at_tree, at_position, at_slot            # -1: none; at_: where the search goes on
    cdef bint is_gang(self, int32_t slot) noexcept nogil
    cdef int join(self, int32_t slot) except -1 nogil
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef int rebuild(self) except -1 nogil
    cdef void free_node(self, int32_t node) noexcept nogil
    cdef void free_all(self) noexcept nogil
    cdef bint known(self) noexcept nogil
    cdef void settle(self, bint lasting) noexcept nogil
    cdef int32_t first(self) noexcept nogil
    cdef bint front_fits(self) noexcept nogil
    cdef void reserve(self, int32_t node, double start, double now) noexcept nogil
    cdef double lasts(self, int32_t slot) noexcept nogil
    cdef void write(self, LineTree* tree, int32_t position, int32_t slot) noexcept nogil
    cdef int make_room(self, LineTree* tree) except -1 nogil
    cpdef int verify(self) except -1
    cdef int verify_tried(self, NodeFilter conditions) except -1
    cdef int32_t following(self) noexcept nogil
    cdef int32_t following_by_key(self) noexcept nogil
    cdef void measure(self) noexcept nogil
    cdef void close(self) noexcept nogil
    cdef int tree_of(self, int32_t priority) except -2 nogil
    cdef int32_t first_fitting(self, const LineTree* tree) noexcept nogil
    cdef bint may_fit(self, const Least* least) noexcept nogil
    cdef bint fits(self, int32_t slot) noexcept nogil
