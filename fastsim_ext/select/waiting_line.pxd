# The waiting line as a search tree, and the nodes that were freed since all of the line was tried.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable

cdef enum:
    NEEDS = 3         # requests for no device, for a share of one, for whole ones
    MOST_TREES = 32      # priorities in the line; with more of them every pod is tried
    MOST_FREED = 32      # nodes; with more of them every pod is tried

cdef enum:  # order of the line
    BY_JOINING, BY_PRIORITY, BY_KEY

cdef struct Least:       # the smallest requests below a cell; NEVER: there is none
    int64_t cpu, mem, gpu                # milli-CPU; MiB; milli-GPU of a share, or whole devices

cdef struct LineTree:    # the pods of one priority in the order in which they joined
    int32_t priority
    int32_t room, used   # positions, a power of two; those that were given away
    int32_t alive        # pods in the line
    int32_t* slot        # by position, -1: the pod has left
    Least* least         # by cell and need of devices; cell c has the children 2c and 2c + 1, leaves begin at ``room``

cdef struct FreeRoom:    # of one freed node
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
    cdef int order
    cdef LineTree[MOST_TREES] trees      # by falling priority
    cdef int n_trees
    cdef int32_t* position               # by slot, -1: not in a tree
    cdef int32_t room                    # for slots
    cdef int32_t[MOST_FREED] freed
    cdef FreeRoom[MOST_FREED] rooms      # of the freed nodes that can take a pod
    cdef int n_freed, n_rooms
    cdef int at_tree                     # where the search goes on
    cdef int32_t at_position, at_slot
    cdef bint is_gang(self, int32_t slot) noexcept nogil
    cdef int join(self, int32_t slot) except -1 nogil
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef int rebuild(self) except -1 nogil
    cdef void free_node(self, int32_t node) noexcept nogil
    cdef void free_all(self) noexcept nogil
    cdef bint known(self) noexcept nogil
    cdef void settle(self, bint lasting) noexcept nogil
    cdef int32_t first(self) noexcept nogil
    cdef int make_room(self, LineTree* tree) except -1 nogil
    cpdef int verify(self) except -1
    cdef int verify_tried(self) except -1
    cdef int32_t following(self) noexcept nogil
    cdef int32_t following_by_key(self) noexcept nogil
    cdef void measure(self) noexcept nogil
    cdef void close(self) noexcept nogil
    cdef int tree_of(self, int32_t priority) except -2 nogil
    cdef int32_t first_fitting(self, const LineTree* tree, int32_t cell, int32_t low, int32_t size) noexcept nogil
    cdef bint may_fit(self, const Least* least) noexcept nogil
    cdef bint fits(self, int32_t slot) noexcept nogil
