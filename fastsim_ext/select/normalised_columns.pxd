# Columns of plans whose totals depend on extremes over the nodes.
from libc.stdint cimport int32_t, int64_t, uint32_t
from fastsim_ext.select.score_columns cimport Ends, ScoreColumn, ScoreColumns

cdef enum:
    ROWS = 8             # rows of ROW columns, ROOM together

cdef class NormalisedScoreColumns(ScoreColumns):
    cdef uint32_t[ROWS] counted       # columns whose raw points are counted, as bits
    cdef uint32_t keep(self, int term, int n, int first, int last) noexcept nogil
    cdef void add_up_row(self, int n, int first, int last) noexcept nogil
    cdef int64_t stretched_total(self, const ScoreColumn* column, const Ends* ends, int64_t place) noexcept nogil
    cdef bint find_ends(self, const ScoreColumn* column, Ends* ends) noexcept nogil
    cdef int64_t most_gained(self, const ScoreColumn* column, const Ends* ends) noexcept nogil
    cdef void stretch_again(self, int32_t c, const Ends* ends) noexcept nogil
