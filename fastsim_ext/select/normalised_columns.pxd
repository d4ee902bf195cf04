# Columns of plans whose totals are normalised by extremes over the nodes.
from libc.stdint cimport int32_t, int64_t, uint32_t
from fastsim_ext.select.score_columns cimport Extremes, ScoreColumn, ScoreColumns

cdef enum:
    ROWS = 8             # rows of ROW columns, ROOM together

cdef class NormalisedScoreColumns(ScoreColumns):
    cdef uint32_t[ROWS] counted       # columns whose raw points are counted, as bits
    cdef uint32_t keep(self, int term, int n, int first, int last) noexcept nogil
    cdef void add_up_row(self, int n, int first, int last) noexcept nogil
    cdef int64_t normalised_total(self, const ScoreColumn* column, const Extremes* extremes,
                                  int64_t offset) noexcept nogil
    cdef bint find_extremes(self, const ScoreColumn* column, Extremes* extremes) noexcept nogil
    cdef int64_t largest_gain(self, const ScoreColumn* column, const Extremes* extremes) noexcept nogil
    cdef void renormalise(self, int32_t c, const Extremes* extremes) noexcept nogil
