# Constraints of pod classes besides CPU, memory and devices, and the node state they are checked against.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from fastsim_ext.online.preferences cimport PreferenceTable
from fastsim_ext.online.topology_spread cimport MAX_SPREAD, SpreadTable
from fastsim_ext.select.indexed cimport IndexedSelector
from fastsim_ext.select.scan cimport Choice, NodeFilter, Selector
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport MAX_EXTRA, MAX_GPUS, Pod

cdef struct ClassConstraints:        # the conditions of one class
    int64_t gpu_mem                      # MiB on each device
    int64_t[MAX_EXTRA] extra             # amounts by resource
    bint foreign         # needs a resource that no node has
    int32_t group, most  # most pods of the group on a node; -1 = no limit
    int64_t allowed      # where its row of ``allowed`` begins; -1 = every node

cdef struct NodeView:        # one node at one real or imagined moment
    int n, pods, group_pods, empty       # position; pods; those of the group of the pod; whether no pod is anywhere
    int64_t cpu_left, mem_left           # milli-CPU, MiB
    int32_t[MAX_GPUS] gpu_left           # milli by device
    int64_t[MAX_GPUS] gpu_mem_left       # MiB by device
    int64_t[MAX_EXTRA] extra_left
    int32_t[MAX_SPREAD] spread           # pods that the view has added, by rule of spread

cdef struct Amounts:         # of one node, read where they are kept
    int64_t cpu, mem                     # milli-CPU, MiB
    int pods
    const int32_t* gpu                   # milli by device
    const int64_t* gpu_mem               # MiB by device
    const int64_t* extra

cdef class ConstraintTable(NodeFilter):
    # not saved: constraints are passed again, and running pods take their amounts again
    cdef NodeTable nodes
    cdef WorkTable work
    cdef Selector select
    cdef IndexedSelector indexed         # the same if it stores totals that depend on no other node, or None
    cdef PodMembership membership
    cdef SpreadTable spread
    cdef readonly PreferenceTable preferences
    cdef int32_t* rule_of                # by class, or -1
    cdef ClassConstraints* rules
    cdef uint8_t* allowed                # rows of one byte a node
    cdef int64_t class_room, n_rules, rule_room, n_extra, allowed_room, n_allowed
    cdef bint counts_groups              # whether any class has a limit on a group, or rules of spread
    cdef int64_t[:, ::1] gpu_mem_left__ng, extra_left__nr
    cdef const int64_t[::1] gpu_mem_cap
    cdef const int64_t[:, ::1] extra_cap__nr
    cdef int32_t[:, ::1] unmasked__ng        # scratch: device rows that are masked during a decision
    cdef uint8_t[::1] masked
    cdef const ClassConstraints* rule(self, int cls) noexcept nogil
    cdef int reserve_classes(self, int cls) except -1
    cdef int reserve_marks(self, int64_t bytes_wanted) except -1
    cdef void view(self, int n, int cls, NodeView* view) noexcept nogil
    cdef void shift(self, NodeView* view, int cls, uint64_t gpus, int32_t group, int viewer, int sign) noexcept nogil
    cdef int failed_check(self, const NodeView* view, int cls) noexcept nogil
    cdef int lacking(self, const NodeView* view, int cls) noexcept nogil
    cdef int lacking_of(self, int n, int cls, const Amounts* left) noexcept nogil
    cdef uint64_t fitting(self, const NodeView* view, int cls) noexcept nogil
    cdef uint64_t tightest(self, const NodeView* view, int cls) noexcept nogil
    cdef void hold(self, int n, int cls, uint64_t gpus, int sign) noexcept nogil
    cdef void vacate(self, int n, NodeView* view) noexcept nogil
    cdef int lasting_obstacle(self, int cls) noexcept nogil
    cdef int64_t capacity(self, int n, int cls) noexcept nogil
    cdef bint above_all_nodes(self, int32_t slot) noexcept nogil
    cdef bint never_fits(self, int n, int cls) noexcept nogil
    cdef int choose(self, int cls, Choice* choice, int barred, int alone) except -1 nogil
    cdef int32_t best_stored(self, int cls, const Pod* pod) except -2 nogil
    cdef int stay(self, int cls, int n, uint64_t gpus, Choice* choice) except -1 nogil
    cdef void mask(self, int n, int64_t wanted) noexcept nogil
    cdef void unmask(self, int n) noexcept nogil
