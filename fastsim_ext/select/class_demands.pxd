# What many pod classes ask of a node, side by side, and how far one node gets with each of them.
from libc.stdint cimport int32_t, int64_t, int8_t
from fastsim_ext.types cimport Node, Pod

cdef enum:
    ROOM = 256           # most classes
    TERMS = 8            # most terms of a plan
    UNFIT = -1073741824  # plus a Reason: the node cannot host the class
    WORST = -536870912   # every total is above this, every UNFIT below
    SMALL_UNFIT = -127   # the same where totals take one byte
    SMALL_WORST = -106
    LARGEST = 1073741824  # milli-CPU or MiB: more is not told apart

cdef enum:
    CLEAR = 127              # of a class that nothing keeps from a node; in a row of figures: nobody knows
    HEIGHTS = 256            # most heights, less one that is never reached

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

cdef struct ThresholdLevels:         # the distinct amounts that classes ask of one resource
    int count
    int32_t[HEIGHTS] amounts    # rising from 0
    int8_t[ROOM] of_class    # by class: where its amount stands among them, less 128

cdef struct ByteThresholds:
    int64_t changes          # those of the needs they were made from; 0: none
    bint told                # whether a byte tells all amounts apart
    ThresholdLevels cpu, mem, most
    int8_t[ROOM] idle
    int8_t* closed           # by model + 1 (0: no model) and class: CLEAR or why not

cdef int hurdles_make(ByteThresholds* hurdles, const Needs* needs) except -1 nogil

cdef bint hurdles_row(const ByteThresholds* hurdles, int count, const Node* node, bint full, const int8_t* figure__c,
                      int8_t* out__c) noexcept nogil
