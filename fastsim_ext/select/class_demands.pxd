# Demands of many pod classes, side by side, and the first check that one node fails for each.
from libc.stdint cimport int32_t, int64_t, int8_t
from fastsim_ext.types cimport Node, Pod

cdef enum:
    ROOM = 256           # most classes
    TERMS = 8            # most terms of a plan
    UNFIT = -1073741824  # plus a Reason: the node cannot host the class
    WORST = -536870912   # every total is above this, every UNFIT below
    SMALL_UNFIT = -127   # the same where totals take one byte
    SMALL_WORST = -106
    LARGEST = 1073741824  # milli-CPU or MiB: larger amounts are taken for this one

cdef enum:
    CLEAR = 127              # all checks passed; in a row of figures: not computed yet
    LEVELS = 256             # one more than the most levels

cdef struct ClassDemands:  # by class; an unused entry fits nowhere
    int32_t[ROOM] cpu, mem              # milli-CPU, MiB
    int32_t[ROOM] most, idle            # milli left on the device with most; idle devices
    int64_t changes                     # how often a class was added or removed
    int n_models                        # GPU models; ``closed`` has one more row
    int32_t* closed                     # by model + 1 (0: no model) and class: whether the class may not use it

cdef int demands_alloc(ClassDemands* demands, int n_models) except -1 nogil
cdef bint demands_expressible(const Pod* pod) noexcept nogil
cdef void demands_set(ClassDemands* demands, int c, const Pod* pod) noexcept nogil
cdef void demands_drop(ClassDemands* demands, int c) noexcept nogil
cdef int32_t demands_check_one(const ClassDemands* demands, int c, const Node* node, bint full,
                               int32_t unfit) noexcept nogil

cdef void demands_check(const ClassDemands* demands, int first, int last, const Node* node, bint full, int32_t unfit,
                        int32_t* out) noexcept nogil

cdef struct ThresholdLevels:         # the distinct demands for one resource
    int count
    int32_t[LEVELS] amounts     # rising from 0
    int8_t[ROOM] of_class    # by class: the rank of its amount among them, less 128

cdef struct ByteThresholds:
    int64_t changes          # ``changes`` of the demands they were built from; 0: none
    bint exact               # whether ranks of one byte distinguish all amounts
    ThresholdLevels cpu, mem, most
    int8_t[ROOM] idle
    int8_t* closed           # by model + 1 (0: no model) and class: CLEAR or why not

cdef int thresholds_build(ByteThresholds* thresholds, const ClassDemands* demands) except -1 nogil

cdef bint thresholds_row(const ByteThresholds* thresholds, int count, const Node* node, bint full,
                         const int8_t* figure__c, int8_t* out__c) noexcept nogil
