# What many pod classes ask of a node, side by side, and how far one node gets with each of them.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.types cimport Node, Pod

cdef enum:
    ROOM = 256           # most classes
    TERMS = 8            # most terms of a plan
    UNFIT = -1073741824  # plus a Reason: the node cannot host the class
    WORST = -536870912   # every total is above this, every UNFIT below
    SMALL_UNFIT = -127   # the same where totals take one byte
    SMALL_WORST = -106
    LARGEST = 1073741824  # milli-CPU or MiB: more is not told apart

cdef struct Needs:       # by class; a class that nobody has fits nowhere
    int32_t[ROOM] cpu, mem              # milli-CPU, MiB
    int32_t[ROOM] most, idle            # the fullest device must have as much left; so many must be unused
    int64_t changes                     # how often a class came or went
    int n_models                        # rows of ``closed``, less one
    int32_t* closed                     # by model + 1 (0: no model) and class: whether the class may not use it

cdef int needs_plan(Needs* needs, int n_models) except -1 nogil
cdef bint needs_known(const Pod* pod) noexcept nogil
cdef void needs_set(Needs* needs, int c, const Pod* pod) noexcept nogil
cdef void needs_drop(Needs* needs, int c) noexcept nogil
cdef int32_t needs_one(const Needs* needs, int c, const Node* node, bint full, int32_t unfit) noexcept nogil
cdef void needs_judge(const Needs* needs, int first, int last, const Node* node, bint full, int32_t unfit,
                      int32_t* out) noexcept nogil
