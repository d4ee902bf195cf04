# Columns whose figures and totals take one byte.
from libc.stdint cimport int8_t
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.select.class_demands cimport ROOM, ByteThresholds
from fastsim_ext.select.score_columns cimport ScoreColumns

cdef class ByteScoreColumns(ScoreColumns):
    cdef ByteThresholds thresholds
    cdef int8_t[ROOM] values     # of one node, by column
    cdef int fill_row(self, int n, char* row, View* view) except -1 nogil
