# Deferred updates of one-byte max trees: rows are written at once, the maxima above before the next query.
from libc.stdint cimport int8_t, int32_t
from fastsim_ext.select.max_tree cimport MaxForest

cdef void updates_put(MaxForest* forest, int32_t at, const int8_t* values) noexcept nogil
cdef void updates_apply(MaxForest* forest) noexcept nogil
