# Rows of groves of narrow trees, written now and summed up when somebody asks.
from libc.stdint cimport int8_t, int32_t
from fastsim_ext.select.max_tree cimport MaxForest

cdef void climb_put(MaxForest* grove, int32_t at, const int8_t* values) noexcept nogil
cdef void climb_up(MaxForest* grove) noexcept nogil
