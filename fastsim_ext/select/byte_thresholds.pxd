# What many pod classes ask of a node as numbers of one byte: the higher a hurdle, the more is asked for.
from libc.stdint cimport int8_t, int32_t, int64_t
from fastsim_ext.select.class_demands cimport ROOM, Needs
from fastsim_ext.types cimport Node

cdef enum:
    CLEAR = 127              # of a class that nothing keeps from a node; in a row of figures: nobody knows
    HEIGHTS = 256            # most heights, less one that is never reached

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
